"""Templates: gold queries with slots, and the examples that are made from them.

A pack's folder ``templates`` holds TOML files. A slot says which values there are and how people
name them; a template has a gold query and phrasings of its question, with ``<<name>>`` where a
value goes. `instantiate` draws values from the pack's data and runs each gold; `write_instances`
writes the results as ordinary SHACL examples, one file a template.

The first two phrasings of a language are for training and the others for evaluation, so an
evaluation question never repeats a training question's wording.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated, Any, NamedTuple

import pyoxigraph as ox
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from reasoningbank.corpus.pack import Pack
from reasoningbank.corpus.shacl import CLASS_OF_FORM, QUERY_PROPERTIES
from reasoningbank.corpus.splits import PARTS, SplitName
from reasoningbank.errors import QueryError, UsageError, invalid_data, read_toml, unknown_key
from reasoningbank.findings import Finding
from reasoningbank.sparql import BooleanResult, GraphResult, Result, SPARQLClient, TableResult
from reasoningbank.sparql.query import prepare
from reasoningbank.sparql.terms import LONG, written

_PLACE = re.compile(r"<<(\w+)>>")
#: Phrasings of a language that are for training.
_TRAINING = 2
#: Values tried for each instance that is wanted, before a template is left with fewer.
_TRIES = 40
_MOST_ROWS = 10_000
_Phrasings = Annotated[tuple[str, ...], Field(min_length=4)]


class TemplateSlot(BaseModel):
    """What may stand in a place of a template: values with their surface forms."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: A SELECT query of ``?value`` and ``?text``, a row for each surface form. A text with a
    #: language tag is for questions in that language, one without is for all.
    query: str = ""
    #: A fixed table instead: a term as written in a query, and its surface forms by language,
    #: ``""`` for all
    values: Mapping[str, Mapping[str, tuple[str, ...]]] = {}

    @model_validator(mode="after")
    def _has_one(self) -> TemplateSlot:
        if bool(self.query) == bool(self.values):
            raise ValueError("give either query or values")
        return self


class QuestionTemplate(BaseModel):
    """A gold query with slots and phrasings of its question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")]  #: Unique in the pack
    #: ``train`` spreads the instances over all splits; ``dev`` and ``test`` keep them all
    split: SplitName = "train"
    query: str  #: The gold, with ``<<name>>`` in place of values
    #: Language → at least four questions, each with every place of the query
    phrasings: Mapping[str, _Phrasings]
    #: Place → name of its slot; a place that is not named here has its own slot's name
    slots: Mapping[str, str] = {}
    #: A SELECT query of joint values for the places, for slots that depend on each other
    draw: str = ""
    keywords: tuple[str, ...] = ()  #: Keywords of the examples
    rows: tuple[int, int] = (1, 200)  #: Fewest and most rows of an answer
    bag: bool = False  #: Whether duplicate rows count
    ordered: bool = False  #: Whether the question asks for an order

    @model_validator(mode="after")
    def _mentions_all(self) -> QuestionTemplate:
        for language, texts in self.phrasings.items():
            if any(set(_PLACE.findall(text)) != set(self.places) for text in texts):
                raise ValueError(f"phrasing in {language!r} has other places than the query")
        return self

    @property
    def places(self) -> tuple[str, ...]:
        """The places of the query, each once."""
        return tuple(dict.fromkeys(_PLACE.findall(self.query)))


@dataclass(frozen=True)
class Instance:
    """An example made from a template: split, gold, a question a language, endpoints of SERVICE."""

    id: str
    template: QuestionTemplate
    split: SplitName
    query: str
    form: str
    questions: Mapping[str, str]
    services: tuple[str, ...] = ()


def _invalid(error: ValidationError) -> str:
    """Return what is wrong with a slot or a template, by its key."""
    first = error.errors()[0]
    if first["type"] != "extra_forbidden":
        return invalid_data(error).what
    table = TemplateSlot if error.title == TemplateSlot.__name__ else QuestionTemplate
    return f"{first['loc'][0]}: {unknown_key(str(first['loc'][0]), table.model_fields)}"


def read_templates(pack: Pack) -> tuple[dict[str, TemplateSlot], list[QuestionTemplate]]:
    """Read the slots and templates of a pack."""
    slots: dict[str, TemplateSlot] = {}
    templates: list[QuestionTemplate] = []
    for file in sorted((pack.root / "templates").glob("*.toml")):
        data = read_toml(file, "bad-template")
        try:
            slots |= {name: TemplateSlot(**slot) for name, slot in data.pop("slots", {}).items()}
            templates += (QuestionTemplate(**one) for one in data.pop("template", []))
        except (ValueError, TypeError) as error:
            what = _invalid(error) if isinstance(error, ValidationError) else str(error)
            title = f" in template {templates[-1].id!r} or the next" if templates else ""
            raise UsageError(f"{what}{title}", where=str(file), code="bad-template") from None
    for template in templates:
        for place in template.places:
            if template.slots.get(place, place) not in slots:
                what = f"template {template.id!r} has no slot for <<{place}>>"
                where = str(pack.root / "templates")
                raise UsageError(what, where=where, code="bad-template")
    return slots, templates


def instantiate(
    pack: Pack, client: SPARQLClient, *, number: int = 15, seed: int = 0
) -> tuple[list[Instance], list[Finding]]:
    """Make instances of a pack's templates.

    The instances of a template differ in their values and in their answers; of an ASK template
    at most half have the same answer.

    Args:
        pack: A pack with templates.
        client: Client of its endpoint.
        number: Instances of a template. Of a training template a third goes to each split.
        seed: Another seed draws other values and other surface forms.

    Returns:
        The instances, by template, and a ``few-instances`` finding for each template whose data
        give fewer than `number`.
    """
    slots, templates = read_templates(pack)
    if not templates:
        what, hint = "the pack has no templates", "add templates/*.toml"
        raise UsageError(what, where=str(pack.root), hint=hint, code="no-templates")
    forms = {name: _surface_forms(slot, pack, client) for name, slot in slots.items()}
    made: list[Instance] = []
    findings: list[Finding] = []
    for template in templates:
        mine = {place: forms[template.slots.get(place, place)] for place in template.places}
        own = _Builder(template, pack, client, mine, Random(f"{seed} {template.id}")).make(number)
        made += own
        if len(own) < number:
            what = f"{template.id} has {len(own)} instances of {number}"
            fields = {"id": template.id, "instances": len(own)}
            findings.append(Finding("few-instances", what, "templates", fields=fields))
    return made, findings


def _surface_forms(slot: TemplateSlot, pack: Pack, client: SPARQLClient) -> _Forms:
    """Return the values of a slot as written in a query, with the forms that name no other."""
    found = [
        (value, _Form(text, language))
        for value, forms in slot.values.items()
        for language, texts in forms.items()
        for text in texts
    ]
    if slot.query:
        for value, text in _rows(client, slot.query, "value", "text"):
            if isinstance(text, ox.Literal) and text.value:
                plain = written(value, pack.prefixes, max_chars=LONG)
                found.append((plain, _Form(text.value, text.language or "")))
    named: dict[str, set[str]] = defaultdict(set)
    for value, form in found:
        named[form.text.casefold()].add(value)
    kept: dict[str, list[_Form]] = defaultdict(list)
    for value, form in sorted(set(found)):
        if len(named[form.text.casefold()]) == 1:
            kept[value].append(form)
    return dict(kept)


class _Form(NamedTuple):
    """A surface form; an empty language stands for all."""

    text: str
    language: str


#: Value → its surface forms.
_Forms = Mapping[str, Sequence[_Form]]


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: values[place[1]], text)


def _rows(client: SPARQLClient, query: str, *names: str) -> Iterator[tuple[Any, ...]]:
    result = client.query(query, max_rows=1_000_000)
    if not isinstance(result, TableResult) or set(names) - set(result.variables):
        wanted = ", ".join(f"?{name}" for name in names)
        raise QueryError(f"the query does not SELECT {wanted}", where=query, code="bad-template")
    at = [result.variables.index(name) for name in names]
    for row in result.rows():
        if all(row[i] is not None for i in at):
            yield tuple(row[i] for i in at)


class _Builder(NamedTuple):
    """Makes the instances of one template; `forms` are those of its places."""

    template: QuestionTemplate
    pack: Pack
    client: SPARQLClient
    forms: Mapping[str, _Forms]
    random: Random

    def make(self, number: int) -> list[Instance]:
        made: list[Instance] = []
        answers: Counter[object] = Counter()
        for chosen in islice(self._candidates(), _TRIES * number):
            if len(made) == number:
                break
            query = _filled(self.template.query, chosen).strip()
            result = self.client.query(query, max_rows=_MOST_ROWS)
            answer = self._answer(result)
            most = (number + 1) // 2 if isinstance(result, BooleanResult) else 1
            if answer is None or answers[answer] >= most:
                continue
            answers[answer] += 1
            made.append(self._instance(len(made), query, chosen))
        return made

    def _candidates(self) -> Iterator[dict[str, str]]:
        """Yield values of the places, as drawn."""
        places = self.template.places
        if self.template.draw:
            rows = _rows(self.client, self.template.draw, *places)
            known = self.pack.prefixes
            drawn = sorted({tuple(written(t, known, max_chars=LONG) for t in row) for row in rows})
            self.random.shuffle(drawn)
            for row in drawn:
                chosen = dict(zip(places, row, strict=True))
                if all(value in self.forms[place] for place, value in chosen.items()):
                    yield chosen
            return
        listed = [list(self.forms[place]) for place in places]
        if not all(listed):
            return
        seen = set()
        for _ in range(_TRIES * sum(map(len, listed)) if len(listed) > 1 else 1):
            for values in listed:
                self.random.shuffle(values)
            for row in zip(*listed, strict=False):
                if row not in seen and len(set(row)) == len(row):
                    seen.add(row)
                    yield dict(zip(places, row, strict=True))

    def _answer(self, result: Result) -> object:
        """Return what tells answers apart; None for one that is too short or too long."""
        if isinstance(result, BooleanResult):
            return result.value
        least, most = self.template.rows
        if result.truncated or not least <= result.n_rows <= most:
            return None
        rows = result.triples() if isinstance(result, GraphResult) else result.rows()
        return frozenset(str(row) for row in rows)

    def _instance(self, index: int, query: str, chosen: Mapping[str, str]) -> Instance:
        declared = self.template.split
        split: SplitName = PARTS[index % 3] if declared == "train" else declared
        drawn = {place: self.random.random() for place in chosen}
        questions = {}
        for language, phrasings in self.template.phrasings.items():
            # Development and test share no phrasing where there are enough.
            rest = phrasings[_TRAINING:]
            usable = {"train": phrasings[:_TRAINING], "dev": rest[::2], "test": rest[1::2]}[split]
            texts = {}
            for place, value in chosen.items():
                own = [f.text for f in self.forms[place][value] if f.language in ("", language)]
                texts[place] = own[int(drawn[place] * len(own))]
            questions[language] = _filled(usable[(index // 3) % len(usable)], texts)
        prepared = prepare(query, prefixes=self.pack.prefixes)
        name = f"{self.template.id}_{index + 1:02}"
        made = name, self.template, split, query, prepared.form, questions, prepared.services
        return Instance(*made)


def write_instances(pack: Pack, instances: Sequence[Instance], folder: Path) -> list[Path]:
    """Write instances as SHACL examples, a file for each template; other files there are removed.

    Returns:
        The files written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_template: dict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        by_template[instance.template.id].append(instance)
    for old in folder.glob("*.ttl"):
        old.unlink()
    from jinja2 import Template  # 20 ms that only building a pack needs

    file = files("reasoningbank.corpus").joinpath("instances.jinja")
    page = Template(file.read_text("utf-8"), trim_blocks=True, lstrip_blocks=True)
    shown = {
        "pack": pack,
        "classes": CLASS_OF_FORM,
        "properties": {form: iri for iri, form in QUERY_PROPERTIES.items()},
        "literal": ox.Literal,
    }
    for name, own in by_template.items():
        text = page.render(shown, instances=own)
        (folder / f"{name}.ttl").write_text(text, encoding="utf-8")
    return [folder / f"{name}.ttl" for name in by_template]
