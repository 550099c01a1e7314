"""Group ids of the packs' golds are stable: splits and recorded memories depend on them."""

from __future__ import annotations

import hashlib
import json

import pytest

from reasoningbank.corpus import load_shacl_tasks
from reasoningbank.corpus.features import query_features


@pytest.mark.parametrize(
    ("pack", "n", "digest"),
    [
        ("algebra", 69, "2eeae497a0c54e84"),
        ("liita", 208, "363bfa2dfdb1a5fb"),
        ("uniprot", 161, "c62e4a7bd0ea894f"),
    ],
)
def test_groups_and_templates_of_a_pack_do_not_change(pack: str, n: int, digest: str) -> None:
    tasks = sorted(load_shacl_tasks(pack), key=lambda task: task.id)
    found = [[t.id, t.group, query_features(t.expected_sparql).template] for t in tasks]
    assert len(found) == n
    assert hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16] == digest
