"""Imported by the server that commands are forked from: all that they would import or prepare."""

from __future__ import annotations

import importlib

from reasoningbank.sparql.query import parse_algebra

#: The last ones are what a call of a hosted model imports when it is first made.
_MODULES = (
    "reasoningbank.cli.app",
    "reasoningbank.cli.runs",
    "reasoningbank.cli.ask",
    "reasoningbank.cli.judge",
    "reasoningbank.analysis",
    "dspy.clients.execution",
    "pandas",
    "pyarrow.dataset",
    "rdflib.plugins.stores.memory",
    "httpcore",
    "litellm.integrations.prometheus_services",
    "litellm.llms.litellm_proxy.chat.transformation",
    "litellm.llms.openai.chat.gpt_audio_transformation",
    "litellm.llms.vertex_ai.vertex_ai_partner_models.anthropic.transformation",
    "litellm.proxy._types",
    "openai.lib.streaming.chat",
    "openai.resources",
)

for _name in _MODULES:
    importlib.import_module(_name)
parse_algebra("SELECT ?plant WHERE { ?plant <http://e/height> ?h . FILTER(?h > 3) }")
