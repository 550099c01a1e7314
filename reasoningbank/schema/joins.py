"""Why two parts of a query that both match have no row together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from reasoningbank.findings import Finding
from reasoningbank.schema.lookups import Lookups, Typed, read_literal, variants
from reasoningbank.schema.names import is_label, nearest_names
from reasoningbank.schema.schema import Schema
from reasoningbank.sparql import Term
from reasoningbank.sparql.probing import Failure, Unit, is_generated
from reasoningbank.sparql.probing import as_written as written_text
from reasoningbank.sparql.terms import RDF_TYPE, absolute
from reasoningbank.sparql.tokens import variables_in
from reasoningbank.sparql.tree import TriplePattern

#: Values that a missing step is looked for from, and properties that are listed of a class.
_JOINED, _LISTED = 200, 5
#: Earlier patterns that are tried the other way round.
_TURNED = 2


@dataclass(frozen=True)
class Joins:
    """Explains parts that have rows, but none together with what comes before them."""

    look: Lookups
    schema: Schema
    declared: Mapping[str, str]

    def explain(self, failure: Failure) -> Finding:
        """Return a finding on the part."""
        unit = failure.unit
        text = short(written_text(unit.shown if unit.pattern is None else str(unit.pattern)))
        shared = [
            name
            for name in variables_in(unit.text)
            if any(name in other.variables for other in failure.before)
        ]
        if not shared:
            return Finding("misfit", f"{text} leaves no row", fields={"pattern": text})
        name = min(shared, key=is_generated)
        here = self._sample(name, failure.body(*failure.before))
        if unit.pattern is not None:
            found = self._pattern(failure, name, unit.pattern, here)
            if found is not None:
                return found
        there = self._sample(name, failure.body(unit))
        called = _called(name, failure)
        fields = {"variable": name, "pattern": text}
        if here is None or there is None:
            what = f"{text} matches, but not for any {called} of the patterns before it"
            return Finding("misfit", what, fields=fields)
        first, second = self._typed(here), self._typed(there)
        return Finding(
            "misfit",
            f"{called} does not fit {text}: before it, it is {first}, there {second}",
            fields={**fields, "here": first, "there": second},
        )

    def _pattern(
        self, failure: Failure, name: str, pattern: TriplePattern, here: Typed | None
    ) -> Finding | None:
        text = written_text(str(pattern))
        turned = self.turned(failure, failure.before)
        if turned:
            return _turn(failure.unit, turned)
        earlier = self._earlier_turned(failure, name)
        if earlier is not None:
            return earlier
        fields = {"variable": name, "pattern": text}
        if absolute(pattern.predicate, self.declared) == RDF_TYPE:
            if here is None or here.kind is None:
                return None
            value = self._typed(here)
            what = f"{_called(name, failure)} is {value} here, so {text} does not fit"
            return Finding("wrong-class", what, fields={**fields, "here": value})
        values = self._values(failure, pattern)
        written = self._written(failure, pattern, values)
        if written:
            fields["instead"] = written
            what = f"{text} does not fit"
            return Finding("value-form", what, hint=f"write {written}", fields=fields)
        fixed = (
            self._split(failure, pattern)
            or self._with_step(failure, pattern)
            or self._step_back(failure, pattern)
        )
        if fixed is not None:
            instead, steps = fixed
            # A resource next to this one has a label too: it need not be the one that is meant.
            guess = any(name is not None and is_label(name) for name in steps)
            return Finding(
                "missing-step",
                f"{text} does not fit the patterns before it",
                hint=f"write {instead}",
                fields={**fields, "instead": instead, "guess": guess},
            )
        if values:
            listed = list(dict.fromkeys(self.look.literal(value) for value in values))
            subject = _called(pattern.subject[1:], failure)
            what = f"no {subject} so far has {pattern.predicate} {pattern.object}"
            hint = f"it has {', '.join(listed)}"
            return Finding("other-value", what, hint=hint, fields={**fields, "values": listed})
        if here is not None and pattern.subject == f"?{name}":
            return self._lacking(_called(name, failure), here, pattern)
        return None

    def _earlier_turned(self, failure: Failure, name: str) -> Finding | None:
        """Return the earlier pattern with the shared variable, if turning it round helps."""
        linking = [
            unit
            for unit in failure.before
            if unit.pattern is not None
            and unit.whole is None
            and name in unit.variables
            and len(unit.variables) > 1
            and self._can_turn(unit.pattern)
        ]
        for unit in linking[-_TURNED:]:
            assert unit.pattern is not None, "only patterns link"
            swapped = TriplePattern(unit.pattern.object, unit.pattern.predicate, unit.pattern[0])
            others = [other for other in failure.before if other is not unit]
            if self.look.prober.ask(failure.body(*others, f"{swapped} .", failure.unit)):
                return _turn(unit, written_text(str(swapped)))
        return None

    def turned(self, failure: Failure, before: Sequence[Unit]) -> str:
        """Return the part's pattern turned round, whole path included, if that matches."""
        unit = failure.unit
        for pattern in (unit.pattern, unit.whole):
            if pattern is None or not self._can_turn(pattern):
                continue
            swapped = TriplePattern(pattern.object, pattern.predicate, pattern.subject)
            others = [u for u in before if pattern is unit.pattern or u.whole != pattern]
            if self.look.prober.ask(failure.body(*others, f"{swapped} .")):
                return written_text(str(swapped))
        return ""

    def _can_turn(self, pattern: TriplePattern) -> bool:
        predicate = absolute(pattern.predicate, self.declared)
        resource = pattern.object[:1] in "?$<" or absolute(pattern.object, self.declared)
        return bool(resource) and predicate != RDF_TYPE and pattern.predicate[:1] not in "?$"

    def _values(self, failure: Failure, pattern: TriplePattern) -> list[Term | None]:
        """Return what takes the place of a pattern's constant where the rest holds."""
        if pattern.object[:1] in "?$":
            return []
        body = failure.body(*failure.before, f"{pattern.subject} {pattern.predicate} ?value .")
        return [row[0] for row in self.look.prober.rows(["value"], body, 3) or []]

    def _written(
        self, failure: Failure, pattern: TriplePattern, values: Sequence[Term | None]
    ) -> str:
        """Return the text of a pattern as the data write it where the rest holds."""
        literal = read_literal(pattern.object)
        if literal is None or not values:
            return ""
        forms = " ".join(variants(literal, values))
        body = failure.body(*failure.before, f"{pattern.subject} {pattern.predicate} ?value .")
        rows = self.look.prober.rows(["value"], f"VALUES ?value {{ {forms} }} {body}")
        return f"{pattern.predicate} {self.look.literal(rows[0][0])}" if rows else ""

    def _with_step(
        self, failure: Failure, pattern: TriplePattern
    ) -> tuple[str, list[str | None]] | None:
        """Return the pattern with one more step in its path, if it then joins."""
        subject, predicate, object_ = pattern
        for end in (subject, object_):
            if not self._joins(end, failure):
                continue
            link = f"{subject} {predicate} ?between . ?between ?link {object_} ."
            if end == subject:
                link = f"{subject} ?link ?between . ?between {predicate} {object_} ."
            steps = self._links(failure, end, link)
            if steps:
                first, *others = steps
                path = f"{first}/{predicate}" if end == subject else f"{predicate}/{first}"
                also = f" (or {', '.join(others)} for {first})" if others else ""
                text = written_text(f"{subject} {path} {object_}") + also
                return text, self._iris(*steps, predicate)
        return None

    def _split(
        self, failure: Failure, pattern: TriplePattern
    ) -> tuple[str, list[str | None]] | None:
        """Return an earlier path split at its last step, if the pattern fits what is there."""
        for unit in failure.before:
            step, whole = unit.pattern, unit.whole
            if step is None or whole is None or step.object != pattern.subject:
                continue
            if not is_generated(step.subject[1:]) or not whole.predicate.endswith(step.predicate):
                continue
            on = f"{pattern.predicate} {pattern.object}"
            if self.look.prober.ask(failure.body(*failure.before, f"{step.subject} {on} .")):
                path = whole.predicate.removesuffix(step.predicate).rstrip().removesuffix("/")
                between = _unused(failure)
                text = written_text(
                    f"{whole.subject} {path} {between} . "
                    f"{between} {step.predicate} {step.object} ; {on}"
                )
                return text, self._iris(step.predicate, pattern.predicate)
        return None

    def _step_back(
        self, failure: Failure, pattern: TriplePattern
    ) -> tuple[str, list[str | None]] | None:
        """Return the pattern asked of what leads to its subject, if that joins."""
        if not self._joins(pattern.subject, failure):
            return None
        later = f"?between {pattern.predicate} {pattern.object} ."
        steps = self._links(failure, pattern.subject, f"?between ?link {pattern.subject} . {later}")
        if not steps:
            return None
        other = _unused(failure)
        back = written_text(f"{other} {steps[0]} {pattern.subject}")
        text = f"{back} . {written_text(f'{other} {pattern.predicate} {pattern.object}')}"
        return text, self._iris(steps[0], pattern.predicate)

    def _iris(self, *names: str) -> list[str | None]:
        return [absolute(name, {**self.declared, **self.look.namespaces}) for name in names]

    def _joins(self, end: str, failure: Failure) -> bool:
        return end[:1] in "?$" and any(end[1:] in unit.variables for unit in failure.before)

    def _links(self, failure: Failure, variable: str, link: str) -> list[str]:
        """Return properties that complete a pattern for some values that come before it."""
        before = failure.body(*failure.before)
        few = f"{{ SELECT DISTINCT {variable} {{ {before} }} LIMIT {_JOINED} }}"
        rows = self.look.prober.rows(["link"], f"{few} {failure.body(link)}", 3, distinct=True)
        return [self.look.show(row[0]) for row in rows or []]

    def _lacking(self, called: str, here: Typed, pattern: TriplePattern) -> Finding | None:
        """Return what the class of the values so far has instead of a property it lacks."""
        predicate = absolute(pattern.predicate, self.declared)
        if not isinstance(here.kind, NamedNode) or predicate is None:
            return None
        has = self.schema.properties_of(here.kind.value)
        if not has or predicate in has:
            return None
        near = nearest_names(predicate, self.schema, role="property", among=has, most=_LISTED)
        ranked = dict.fromkeys((*(term.iri for term in near), *has))
        listed = [self.look.show(p) for p in [p for p in ranked if p != RDF_TYPE][:_LISTED]]
        kind = self.look.show(here.kind)
        what = f"{called} is a {kind} here, which has no {pattern.predicate} but "
        return Finding(
            "class-lacks-property",
            f"{what}{', '.join(listed)}, …",
            fields={"class": kind, "property": pattern.predicate, "has": listed},
        )

    def _sample(self, name: str, body: str) -> Typed | None:
        rows = self.look.prober.rows([name, "class"], f"{body} OPTIONAL {{ ?{name} a ?class }}")
        return Typed(*rows[0]) if rows and rows[0][0] is not None else None

    def _typed(self, sample: Typed) -> str:
        kind = f" (a {self.look.show(sample.kind)})" if sample.kind is not None else ""
        return f"{self.look.literal(sample.value)}{kind}"


def _turn(unit: Unit, instead: str) -> Finding:
    pattern = written_text(unit.shown)
    return Finding(
        "reversed-direction",
        f"{pattern} points the wrong way",
        hint=f"write {instead}",
        fields={"pattern": pattern, "instead": instead},
    )


def _unused(failure: Failure) -> str:
    """Return a variable that the query does not use."""
    used = {name for unit in (*failure.before, failure.unit) for name in unit.variables}
    names = ("other", "another", *(f"other{number}" for number in range(2, len(used) + 3)))
    return next(f"?{name}" for name in names if name not in used)


def _called(name: str, failure: Failure) -> str:
    """Return a variable as the query writes it; a path's inner one by the step that binds it."""
    if is_generated(name):
        for unit in failure.before:
            if unit.pattern is not None and unit.pattern.object == f"?{name}":
                return f"the value of {unit.pattern.predicate}"
    return f"?{name}"


def short(text: str, most: int = 80) -> str:
    """Return a text on one line, cut."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
