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
from contextlib import contextmanager
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
from reasoningbank.errors import QueryError, UsageError, read_toml, said_of, unknown_key
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
_Language = Annotated[str, Field(pattern=r"^[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*$")]
#: How the first line of a file of instances begins and ends.
_HEAD = re.compile(r"@prefix ex: <urn:reasoningbank:.*/instances/> \.")


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
    phrasings: Annotated[Mapping[_Language, _Phrasings], Field(min_length=1)]
    #: Place → name of its slot; a place that is not named here has its own slot's name
    slots: Mapping[str, str] = {}
    #: A SELECT query of joint values for the places, for slots that depend on each other
    draw: str = ""
    keywords: tuple[str, ...] = ()  #: Keywords of the examples
    rows: tuple[int, int] = (1, 200)  #: Fewest and most rows of an answer
    bag: bool = False  #: Whether duplicate rows count
    ordered: bool = False  #: Whether the question asks for an order

    @model_validator(mode="after")
    def _fits(self) -> QuestionTemplate:
        if not self.places:
            raise ValueError("the query has no place <<name>>")
        if self.rows[0] > self.rows[1]:
            raise ValueError(f"rows: at least {self.rows[0]} and at most {self.rows[1]}")
        for language, texts in self.phrasings.items():
            if bad := [one for one in texts if set(_PLACE.findall(one)) != set(self.places)]:
                raise ValueError(f"a phrasing in {language!r} has other places: {bad[0]!r}")
            # One of them could be for training and the other for evaluation.
            if len({" ".join(text.casefold().split()) for text in texts}) < len(texts):
                raise ValueError(f"phrasings in {language!r} repeat each other")
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


class _TemplateFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    slots: dict[str, TemplateSlot] = {}
    template: list[QuestionTemplate] = []


def _invalid(error: ValidationError, data: Mapping[str, Any], file: Path) -> UsageError:
    """Return the first mistake in a file of templates, with the slot or template that has it."""
    # An unknown key explains that another one is missing.
    first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    kind, *inside = map(str, first["loc"])
    table: type[BaseModel] = TemplateSlot if kind == "slots" else QuestionTemplate
    where = str(file)
    if inside:
        name = inside.pop(0)
        one = data[kind][int(name) if kind == "template" else name]
        where += f", {kind} {one.get('id', name) if isinstance(one, dict) else name}"
    else:
        inside, table = [kind], _TemplateFile
    what = said_of(first)
    if first["type"] == "extra_forbidden":
        what = unknown_key(inside[-1], table.model_fields)
    what = ": ".join((*inside, what))
    return UsageError(what, where=where, code="bad-template")


def read_templates(pack: Pack) -> tuple[dict[str, TemplateSlot], list[QuestionTemplate]]:
    """Read the slots and templates of a pack."""
    slots: dict[str, TemplateSlot] = {}
    templates: list[QuestionTemplate] = []
    known = Counter[str]()
    for file in sorted((pack.root / "templates").glob("*.toml")):
        data = read_toml(file, "bad-template")
        try:
            found = _TemplateFile(**data)
        except ValidationError as error:
            raise _invalid(error, data, file) from None
        names = [*(f"slot {n}" for n in found.slots), *(f"template {t.id}" for t in found.template)]
        known.update(names)
        if twice := [name for name in names if known[name] > 1]:
            raise UsageError(f"{twice[0]} is there twice", where=str(file), code="bad-template")
        slots |= found.slots
        templates += found.template
    for template in templates:
        for place in template.places:
            if template.slots.get(place, place) not in slots:
                what = f"template {template.id!r} has no slot for <<{place}>>"
                raise UsageError(what, where=str(pack.root / "templates"), code="bad-template")
    return slots, templates


def instantiate(
    pack: Pack, client: SPARQLClient, *, number: int = 15, seed: int = 0
) -> tuple[list[Instance], list[Finding]]:
    """Make instances of a pack's templates.

    The instances of a template differ in their values and in their answers; of an ASK template
    at most half have the same answer.

    Args:
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
    forms = {name: _surface_forms(name, slot, pack, client) for name, slot in slots.items()}
    made: list[Instance] = []
    findings: list[Finding] = []
    for template in templates:
        slot_of = {place: forms[template.slots.get(place, place)] for place in template.places}
        # A value needs a form in every language of the questions.
        mine = {
            place: {v: f for v, f in own.items() if all(_in(to, f) for to in template.phrasings)}
            for place, own in slot_of.items()
        }
        draw, left = Random(f"{seed} {template.id}"), Counter[str]()
        with _named(f"template {template.id!r}"):
            own = _Builder(template, pack, client, mine, draw, left).make(number)
        made += own
        if len(own) < number:
            why = [f"no value of <<{place}>> has a form" for place in mine if not mine[place]]
            why = why or [f"{n} answers {what}" for what, n in left.items()] or ["no other values"]
            what = f"{template.id} has {len(own)} instances of {number}: {', '.join(why)}"
            fields = {"id": template.id, "instances": len(own)}
            findings.append(Finding("few-instances", what, "templates", fields=fields))
    return made, findings


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Name the slot or template whose query fails."""
    try:
        yield
    except QueryError as error:
        raise error.at(f"{place}, {error.where}" if error.where else place) from None


def _surface_forms(name: str, slot: TemplateSlot, pack: Pack, client: SPARQLClient) -> _Forms:
    """Return the values of a slot as written in a query, with the forms that name no other."""
    found = [
        (value, _Form(text, language))
        for value, forms in slot.values.items()
        for language, texts in forms.items()
        for text in texts
    ]
    if slot.query:
        with _named(f"slot {name!r}"):
            rows = list(_rows(client, slot.query, "value", "text"))
        for value, text in rows:
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


def _in(language: str, forms: Sequence[_Form]) -> list[str]:
    return [form.text for form in forms if form.language in ("", language)]


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
    left: Counter[str]  #: Answers that gave no instance, by the reason

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
                least, limit = self.template.rows
                outside = f"not of {least} to {limit} rows"
                self.left[outside if answer is None else "given before"] += 1
                continue
            answers[answer] += 1
            made.append(self._instance(len(made), query, chosen))
        return made

    def _candidates(self) -> Iterator[dict[str, str]]:
        """Yield values of the places, as drawn."""
        places = self.template.places
        if self.template.draw:
            with _named("draw"):
                rows = list(_rows(self.client, self.template.draw, *places))
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
                own = _in(language, self.forms[place][value])
                texts[place] = own[int(drawn[place] * len(own))]
            questions[language] = _filled(usable[(index // 3) % len(usable)], texts)
        prepared = prepare(query, prefixes=self.pack.prefixes)
        name = f"{self.template.id}_{index + 1:02}"
        made = name, self.template, split, query, prepared.form, questions, prepared.services
        return Instance(*made)


def write_instances(pack: Pack, instances: Sequence[Instance], folder: Path) -> list[Path]:
    """Write instances as SHACL examples in place of earlier ones; return a file for each template.

    Raises:
        UsageError: If the folder holds other examples; nothing is removed then.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_template: dict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        by_template[instance.template.id].append(instance)
    earlier = sorted(folder.glob("*.ttl"))
    for old in earlier:
        if not _HEAD.match(old.read_text("utf-8", errors="replace")):
            hint = "keep instances in a folder of their own"
            raise UsageError("was not made from templates", where=str(old), hint=hint)
    for old in earlier:
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
    # A hyphen: no template has this name.
    (folder / "declared-prefixes.ttl").write_text(page.render(shown), encoding="utf-8")
    return [folder / f"{name}.ttl" for name in by_template]
