"""How near `count_tokens` comes to a model's own tokenizer: read from a GGUF, no weights loaded.

`python -m benchmarks.token_counts MODEL.gguf` prints the error by kind of text; it needs
`pip install gguf tokenizers`, which nothing else does. With `--json FILE` it writes counts of
single texts, as `tests/lm/token_counts.json` holds them.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from reasoningbank.corpus import Pack, load_pack, load_shacl_tasks, split_tasks
from reasoningbank.lm.tokens import count_tokens
from reasoningbank.memory.layer import load_notes

#: Texts are cut at line ends into pieces of about so many characters.
PIECE_CHARS = 900
#: Shorter texts are no measure of an error in percent.
LEAST_TOKENS = 25

#: As transformers has it for Qwen2.
_QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

ITALIAN = (
    "Quali proteine sono associate alla malattia di Alzheimer? Indica il nome raccomandato della "
    "proteina e il simbolo del gene, in ordine alfabetico. Si considerano soltanto le proteine "
    "umane già riviste dai curatori.",
    "Per ogni parola latina che ha un derivato italiano, elenca il lemma, la categoria "
    "grammaticale e il numero dei significati registrati nel dizionario. Se un lemma ha più forme "
    "scritte, mostrane una sola, la più frequente nei testi della collezione.",
    "Le parole che terminano in -zione sono sostantivi femminili; trova quelle che esprimono un "
    "sentimento positivo e conta quante sono per ciascun genere.",
    "Come si scrive una query? Prima si guarda quali proprietà hanno le istanze della classe, poi "
    "si prova la query con poche righe, e infine si controlla che le colonne siano quelle che la "
    "domanda chiede.",
)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a GGUF with a vocabulary of Qwen2's kind")
    parser.add_argument("--json", type=Path, help="write texts and counts into this file")
    given = parser.parse_args()
    count = tokenizer_of(given.model)
    measured = [(kind, text, count(text)) for kind, text in texts(load_pack("uniprot"))]
    if given.json:
        given.json.write_text(json.dumps(_chosen(measured), ensure_ascii=False, indent=1) + "\n")
    print(f"{'kind':<12}{'texts':>7}{'tokens':>9}{'all':>8}{'median':>8}{'p95':>8}")
    for kind, group in itertools.groupby(measured, lambda one: one[0]):
        print(_row(kind, [(count_tokens(text), real) for _, text, real in group]))


def tokenizer_of(model: Path) -> Callable[[str], int]:
    """Return what counts tokens as the model's own tokenizer does."""
    from gguf import GGUFReader
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    fields: Mapping[str, Any] = GGUFReader(str(model)).fields
    if fields["tokenizer.ggml.pre"].contents() != "qwen2":
        raise SystemExit(f"{model}: its text is cut in another way than Qwen2's")
    words = fields["tokenizer.ggml.tokens"].contents()
    merges = fields["tokenizer.ggml.merges"].contents()
    tokenizer = Tokenizer(
        models.BPE(
            vocab={word: number for number, word in enumerate(words)},
            merges=[tuple(merge.split(" ")) for merge in merges],
        )
    )
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN2), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return lambda text: len(tokenizer.encode(text).ids)


def texts(pack: Pack) -> Iterator[tuple[str, str]]:
    """Yield texts as prompts hold them, with their kinds; none of the test split."""
    split = split_tasks(load_shacl_tasks(pack.root))
    for task in (*split.train, *split.dev):
        yield "question", task.query
    for task in (*split.train, *split.dev):
        yield "query", task.expected_sparql
    for note in load_notes(pack):
        yield "hint", note.text
    for text in ITALIAN:
        yield "italian", text
    for path in (pack.schema, pack.void):
        if path is not None:
            yield from (("turtle", piece) for piece in _pieces(path.read_text(encoding="utf-8")))
    for path in sorted((Path(__file__).parent.parent / "docs").glob("*.md")):
        yield from (("prose", piece) for piece in _pieces(path.read_text(encoding="utf-8")))


def _pieces(text: str) -> Iterator[str]:
    piece = ""
    for line in text.splitlines(keepends=True):
        piece += line
        if len(piece) > PIECE_CHARS:
            yield piece
            piece = ""
    if piece.strip():
        yield piece


def _row(kind: str, counts: list[tuple[int, int]]) -> str:
    errors = sorted(abs(counted / real - 1) for counted, real in counts if real >= LEAST_TOKENS)
    together = sum(counted for counted, _ in counts) / sum(real for _, real in counts) - 1
    middle = statistics.median(errors) if errors else float("nan")
    most = errors[int(0.95 * (len(errors) - 1))] if errors else float("nan")
    tokens = sum(real for _, real in counts)
    return f"{kind:<12}{len(counts):>7}{tokens:>9}{together:>+8.1%}{middle:>8.1%}{most:>8.1%}"


def _chosen(measured: list[tuple[str, str, int]]) -> list[dict[str, Any]]:
    """Return a few texts of each kind."""
    kept = []
    for kind, group in itertools.groupby(measured, lambda one: one[0]):
        long = [(text, real) for _, text, real in group if real >= LEAST_TOKENS]
        step = max(1, len(long) // 6)
        kept += [{"kind": kind, "text": t, "tokens": real} for t, real in long[::step][:6]]
    return kept


if __name__ == "__main__":
    main()
