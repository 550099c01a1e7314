"""Why two parts of a query that both match have no row together."""

from __future__ import annotations

from collections.abc import Iterator

from pyoxigraph import NamedNode

from reasoningbank.findings import Finding
from reasoningbank.schema.lookups import Typed, read_literal, variants, write
from reasoningbank.schema.names import is_label, nearest_names
from reasoningbank.schema.probing import Failure, Unit, is_generated, joined, written_text
from reasoningbank.sparql import Term
from reasoningbank.sparql.terms import RDF_TYPE, absolute, short
from reasoningbank.sparql.tokens import variables_in
from reasoningbank.sparql.tree import TriplePattern

#: Values that a missing step is looked for from, and properties that are listed of a class.
_JOINED, _LISTED = 200, 5
#: Earlier patterns that are tried the other way round.
_TURNED = 2


class Joins(Failure):
    """Explains a part that has rows, but none together with what comes before it."""

    def explain(self) -> Finding:
        unit, before = self.unit, self.before
        text = short(written_text(unit.shown if unit.pattern is None else str(unit.pattern)))
        earlier = {name for other in before for name in other.variables}
        shared = [name for name in variables_in(unit.text) if name in earlier]
        if not shared:
            return Finding("misfit", f"{text} leaves no row", fields={"pattern": text})
        name = min(shared, key=is_generated)
        here = self._sample(name, *before)
        if unit.pattern is not None:
            found = self._pattern(name, unit.pattern, here)
            if found is not None:
                return found
        there = self._sample(name, unit)
        called = self._called(name)
        fields = {"variable": name, "pattern": text}
        if here is None or there is None:
            what = f"{text} matches, but not for any {called} of the patterns before it"
            return Finding("misfit", what, fields=fields)
        first, second = self._typed(here), self._typed(there)
        meant = None
        if unit.kind in ("values", "bind"):
            meant = self.look.meant(name, joined(before), there.value, here.value)
        if meant is not None:
            code, instead = meant
            what = f"{text} does not fit the patterns before it: {called} is {first} there"
            return write(code, what, f"{instead} in place of {second}", fields, instead)
        what = f"{called} does not fit {text}: before it, it is {first}, there {second}"
        return Finding("misfit", what, fields={**fields, "here": first, "there": second})

    def turned(self) -> str:
        """Return the part's pattern turned round, whole path included, if that matches."""
        step = self.unit.pattern
        for pattern in (step, self.unit.whole):
            if pattern is not None and self._can_turn(pattern):
                others = [u for u in self.before if pattern is step or u.whole != pattern]
                if self._matches(*others, f"{_swapped(pattern)} ."):
                    return written_text(str(_swapped(pattern)))
        return ""

    def _pattern(self, name: str, pattern: TriplePattern, here: Typed | None) -> Finding | None:
        text = written_text(str(pattern))
        turned = self.turned()
        if turned:
            return _turn(self.unit, turned)
        earlier = self._earlier_turned(name)
        if earlier is not None:
            return earlier
        fields = {"variable": name, "pattern": text}
        if self.look.name(pattern.predicate) == RDF_TYPE:
            if here is None or here.kind is None:
                return None
            value = self._typed(here)
            what = f"{self._called(name)} is {value} here, so {text} does not fit"
            return Finding("wrong-class", what, fields={**fields, "here": value})
        values = [] if pattern.object[:1] in "?$" else self._values(pattern, 3)
        written = self._as_in_data(pattern, values)
        if written:
            return write("value-form", f"{text} does not fit", written, fields)
        for instead, *names in self._with_steps(pattern):
            # A resource next to this one has a label too: it need not be the one that is meant.
            prefixes = {**self.look.query.declared, **self.look.namespaces}
            steps = [absolute(name, prefixes) for name in names]
            guess = any(step is not None and is_label(step) for step in steps)
            if guess and (lacking := self._lacking(name, here, pattern)):
                return lacking
            what = f"{text} does not fit the patterns before it"
            return write("missing-step", what, instead, {**fields, "guess": guess})
        if values:
            listed = list(dict.fromkeys(map(self.look.show, values)))
            subject = self._called(pattern.subject[1:])
            what = f"no {subject} so far has {pattern.predicate} {pattern.object}"
            hint = f"it has {', '.join(listed)}"
            return Finding("other-value", what, hint=hint, fields={**fields, "values": listed})
        return self._lacking(name, here, pattern)

    def _earlier_turned(self, name: str) -> Finding | None:
        """Return the earlier pattern with the shared variable, if turning it round helps."""
        linking = [
            (unit, _swapped(unit.pattern))
            for unit in self.before
            if unit.pattern is not None
            and unit.whole is None
            and name in unit.variables
            and len(unit.variables) > 1
            and self._can_turn(unit.pattern)
        ]
        for unit, swapped in linking[-_TURNED:]:
            others = [other for other in self.before if other is not unit]
            if self._matches(*others, f"{swapped} .", self.unit):
                return _turn(unit, written_text(str(swapped)))
        return None

    def _can_turn(self, pattern: TriplePattern) -> bool:
        predicate = self.look.name(pattern.predicate)
        resource = pattern.object[:1] in "?$<" or self.look.name(pattern.object)
        return bool(resource) and predicate != RDF_TYPE and pattern.predicate[:1] not in "?$"

    def _matches(self, *units: Unit | str) -> bool | None:
        return self.look.ask(joined(units))

    def _values(self, pattern: TriplePattern, most: int, head: str = "") -> list[Term | None]:
        """Return what takes the place of a pattern's object where the rest holds."""
        open_pattern = f"{pattern.subject} {pattern.predicate} ?value ."
        body = joined((*self.before, open_pattern))
        return self.look.column("value", head + body, most)

    def _as_in_data(self, pattern: TriplePattern, values: list[Term | None]) -> str:
        """Return the text of a pattern as the data write it where the rest holds."""
        text = read_literal(pattern.object) if values else None
        if text is None:
            return ""
        found = self._values(pattern, 1, f"VALUES ?value {{ {' '.join(variants(text, values))} }} ")
        return f"{pattern.predicate} {self.look.show(found[0])}" if found else ""

    def _with_steps(self, pattern: TriplePattern) -> Iterator[tuple[str, ...]]:
        """Yield what to write instead, with one more step, and the properties in it."""
        subject, predicate, object_ = pattern
        yield from self._split(pattern)
        for end in (subject, object_):
            at_subject = end == subject
            link = f"{subject} {predicate} ?between . ?between ?link {object_} ."
            if at_subject:
                link = f"{subject} ?link ?between . ?between {predicate} {object_} ."
            steps = self._links(end, link)
            if steps:
                first, *others = steps
                path = f"{first}/{predicate}" if at_subject else f"{predicate}/{first}"
                also = f" (or {', '.join(others)} for {first})" if others else ""
                yield written_text(f"{subject} {path} {object_}") + also, *steps, predicate
        # The pattern asked of what leads to its subject.
        later = f"?between {predicate} {object_} ."
        for step in self._links(subject, f"?between ?link {subject} . {later}")[:1]:
            other = self._unused()
            back = written_text(f"{other} {step} {subject}")
            yield f"{back} . {written_text(f'{other} {predicate} {object_}')}", step, predicate

    def _split(self, pattern: TriplePattern) -> Iterator[tuple[str, ...]]:
        """Yield an earlier path split at its last step, if the pattern fits what is there."""
        for unit in self.before:
            step, whole = unit.pattern, unit.whole
            if step is None or whole is None or step.object != pattern.subject:
                continue
            if not is_generated(step.subject[1:]) or not whole.predicate.endswith(step.predicate):
                continue
            on = f"{pattern.predicate} {pattern.object}"
            if self._matches(*self.before, f"{step.subject} {on} ."):
                path = whole.predicate.removesuffix(step.predicate).rstrip().removesuffix("/")
                between = self._unused()
                text = written_text(
                    f"{whole.subject} {path} {between} . "
                    f"{between} {step.predicate} {step.object} ; {on}"
                )
                yield text, step.predicate, pattern.predicate

    def _links(self, end: str, link: str) -> list[str]:
        """Return properties that complete a pattern for some earlier values of one end."""
        if end[:1] not in "?$" or not any(end[1:] in unit.variables for unit in self.before):
            return []
        few = f"{{ SELECT DISTINCT {end} {{ {joined(self.before)} }} LIMIT {_JOINED} }} {link}"
        return [self.look.show(one) for one in self.look.column("link", few, 3, distinct=True)]

    def _lacking(self, name: str, here: Typed | None, pattern: TriplePattern) -> Finding | None:
        """Return what the class of the values so far has instead of a property it lacks."""
        predicate, schema = self.look.name(pattern.predicate), self.look.schema
        # The schema describes the endpoint itself, not that of a SERVICE.
        if here is None or pattern.subject != f"?{name}" or self.look.service:
            return None
        if not isinstance(here.kind, NamedNode) or predicate is None:
            return None
        has = schema.properties_of(here.kind.value)
        if not has or predicate in has:
            return None
        near = nearest_names(predicate, schema, role="property", among=has, most=_LISTED)
        ranked = dict.fromkeys((*(term.iri for term in near), *has))
        listed = [self.look.show(p) for p in [p for p in ranked if p != RDF_TYPE][:_LISTED]]
        kind = self.look.show(here.kind)
        what = f"{self._called(name)} is a {kind} here, which has no {pattern.predicate} but "
        fields = {"class": kind, "property": pattern.predicate, "has": listed}
        return Finding("class-lacks-property", f"{what}{', '.join(listed)}, …", fields=fields)

    def _sample(self, name: str, *units: Unit) -> Typed | None:
        body = f"{joined(units)} OPTIONAL {{ ?{name} a ?class }}"
        rows = self.look.rows([name, "class"], body)
        return Typed(*rows[0]) if rows and rows[0][0] is not None else None

    def _typed(self, sample: Typed) -> str:
        kind = f" (a {self.look.show(sample.kind)})" if sample.kind is not None else ""
        return f"{self.look.show(sample.value)}{kind}"

    def _unused(self) -> str:
        units = (*self.before, self.unit)
        used = {name for unit in units for name in unit.variables}
        names = ("other", "another", *(f"other{number}" for number in range(2, len(used) + 3)))
        return next(f"?{name}" for name in names if name not in used)

    def _called(self, name: str) -> str:
        """Return a variable as written; a path's inner one by the step that binds it."""
        if is_generated(name):
            for unit in self.before:
                if unit.pattern is not None and unit.pattern.object == f"?{name}":
                    return f"the value of {unit.pattern.predicate}"
        return f"?{name}"


def _swapped(pattern: TriplePattern) -> TriplePattern:
    return TriplePattern(pattern.object, pattern.predicate, pattern.subject)


def _turn(unit: Unit, instead: str) -> Finding:
    pattern = written_text(unit.shown)
    return write(
        "reversed-direction", f"{pattern} points the wrong way", instead, {"pattern": pattern}
    )
