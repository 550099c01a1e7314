"""Why two parts of a query that both match have no row together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyoxigraph import NamedNode

from reasoningbank.sparql import Term
from reasoningbank.sparql.probing import Failure, Unit, as_written, is_generated
from reasoningbank.sparql.tokens import variables_in
from reasoningbank.sparql.tree import TriplePattern
from reasoningbank.tools.diagnosis.literals import read_literal, variants
from reasoningbank.tools.diagnosis.lookups import Lookups, Typed
from reasoningbank.tools.diagnosis.names import nearest_names
from reasoningbank.tools.diagnosis.used_names import TYPE, absolute
from reasoningbank.tools.vocabulary import Vocabulary

__all__ = ["Joins", "short"]

#: Values that a missing step is looked for from, and properties that are told of a class.
_JOINED, _LISTED = 200, 5
#: Patterns before the one that fails that are tried the other way round.
_TURNED = 2


@dataclass(frozen=True)
class Joins:
    """Explains parts that have rows, but none with what stands before them.

    Attributes:
        look: Looks texts and resources up.
        names: The endpoint's vocabulary.
        declared: Prefix → namespace of the query.
    """

    look: Lookups
    names: Vocabulary
    declared: Mapping[str, str]

    def explain(self, failure: Failure) -> str:
        """Return a line on the part."""
        unit = failure.unit
        text = short(as_written(unit.shown if unit.pattern is None else str(unit.pattern)))
        shared = [
            name
            for name in variables_in(unit.text)
            if any(name in other.variables for other in failure.before)
        ]
        if not shared:
            return f"{text} leaves no row"
        name = min(shared, key=is_generated)
        here = self._sample(name, failure.body(*failure.before))
        if unit.pattern is not None:
            found = self._pattern(failure, name, unit.pattern, here)
            if found:
                return found
        there = self._sample(name, failure.body(unit))
        called = _called(name, failure)
        if here is None or there is None:
            return f"{text} matches, but with no {called} that comes before it"
        return (
            f"{called} does not fit {text}: before it, it is {self._told(here)}, "
            f"there {self._told(there)}"
        )

    def _pattern(
        self, failure: Failure, name: str, pattern: TriplePattern, here: Typed | None
    ) -> str:
        text = as_written(str(pattern))
        turned = self.turned(failure, failure.before)
        if turned:
            return f"{as_written(failure.unit.shown)} points the wrong way: write {turned}"
        earlier = self._earlier_turned(failure, name)
        if earlier:
            return earlier
        if absolute(pattern.predicate, self.declared) == TYPE:
            if here is None or here.kind is None:
                return ""
            return f"{_called(name, failure)} is {self._told(here)} here, so {text} does not fit"
        values = self._values(failure, pattern)
        written = self._written(failure, pattern, values)
        if written:
            return f"{text} does not fit: write {written}"
        mended = (
            self._split(failure, pattern)
            or self._with_step(failure, pattern)
            or self._step_back(failure, pattern)
        )
        if mended:
            return f"{text} does not fit what stands before it: write {mended}"
        if values:
            listed = ", ".join(dict.fromkeys(self.look.literal(value) for value in values))
            subject = _called(pattern.subject[1:], failure)
            return f"no {subject} so far has {pattern.predicate} {pattern.object}, but {listed}"
        if here is not None and pattern.subject == f"?{name}":
            return self._lacking(_called(name, failure), here, pattern)
        return ""

    def _earlier_turned(self, failure: Failure, name: str) -> str:
        """Return the pattern before that gives the shared variable, if turning it mends all."""
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
                better = as_written(str(swapped))
                return f"{as_written(unit.shown)} points the wrong way: write {better}"
        return ""

    def turned(self, failure: Failure, before: Sequence[Unit]) -> str:
        """Return the part's pattern turned round, whole path and all, if it matches so."""
        unit = failure.unit
        for pattern in (unit.pattern, unit.whole):
            if pattern is None or not self._can_turn(pattern):
                continue
            swapped = TriplePattern(pattern.object, pattern.predicate, pattern.subject)
            others = [u for u in before if pattern is unit.pattern or u.whole != pattern]
            if self.look.prober.ask(failure.body(*others, f"{swapped} .")):
                return as_written(str(swapped))
        return ""

    def _can_turn(self, pattern: TriplePattern) -> bool:
        predicate = absolute(pattern.predicate, self.declared)
        resource = pattern.object[:1] in "?$<" or absolute(pattern.object, self.declared)
        return bool(resource) and predicate != TYPE and pattern.predicate[:1] not in "?$"

    def _values(self, failure: Failure, pattern: TriplePattern) -> list[Term | None]:
        """Return what a pattern with a constant has in its place where the rest holds."""
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

    def _with_step(self, failure: Failure, pattern: TriplePattern) -> str:
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
                return as_written(f"{subject} {path} {object_}") + also
        return ""

    def _split(self, failure: Failure, pattern: TriplePattern) -> str:
        """Return a path before split at its last step, if the pattern fits what stands there.

        ``?p up:encodedBy/skos:prefLabel ?gene`` gives the name, and the gene is asked on.
        """
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
                return as_written(
                    f"{whole.subject} {path} {between} . "
                    f"{between} {step.predicate} {step.object} ; {on}"
                )
        return ""

    def _step_back(self, failure: Failure, pattern: TriplePattern) -> str:
        """Return the pattern asked of what leads to its subject, if that joins."""
        if not self._joins(pattern.subject, failure):
            return ""
        later = f"?between {pattern.predicate} {pattern.object} ."
        steps = self._links(failure, pattern.subject, f"?between ?link {pattern.subject} . {later}")
        if not steps:
            return ""
        other = _unused(failure)
        back = as_written(f"{other} {steps[0]} {pattern.subject}")
        return f"{back} . {as_written(f'{other} {pattern.predicate} {pattern.object}')}"

    def _joins(self, end: str, failure: Failure) -> bool:
        return end[:1] in "?$" and any(end[1:] in unit.variables for unit in failure.before)

    def _links(self, failure: Failure, variable: str, link: str) -> list[str]:
        """Return properties that complete a pattern for some values that come before it."""
        before = failure.body(*failure.before)
        few = f"{{ SELECT DISTINCT {variable} {{ {before} }} LIMIT {_JOINED} }}"
        rows = self.look.prober.rows(["link"], f"{few} {failure.body(link)}", 3, distinct=True)
        return [self.look.show(row[0]) for row in rows or []]

    def _lacking(self, called: str, here: Typed, pattern: TriplePattern) -> str:
        """Say what the class of the values so far has instead of a property it lacks."""
        predicate = absolute(pattern.predicate, self.declared)
        if not isinstance(here.kind, NamedNode) or predicate is None:
            return ""
        has = self.names.properties_of(here.kind.value)
        if not has or predicate in has:
            return ""
        near = nearest_names(predicate, self.names, role="property", among=has, most=_LISTED)
        ranked = dict.fromkeys((*(term.iri for term in near), *has))
        listed = ", ".join(self.look.show(p) for p in [p for p in ranked if p != TYPE][:_LISTED])
        kind = self.look.show(here.kind)
        return f"{called} is a {kind} here, which has no {pattern.predicate} but {listed}, …"

    def _sample(self, name: str, body: str) -> Typed | None:
        rows = self.look.prober.rows([name, "class"], f"{body} OPTIONAL {{ ?{name} a ?class }}")
        return Typed(*rows[0]) if rows and rows[0][0] is not None else None

    def _told(self, sample: Typed) -> str:
        kind = f" (a {self.look.show(sample.kind)})" if sample.kind is not None else ""
        return f"{self.look.literal(sample.value)}{kind}"


def _unused(failure: Failure) -> str:
    """Return a variable that the query does not use."""
    used = {name for unit in (*failure.before, failure.unit) for name in unit.variables}
    names = ("other", "another", *(f"other{number}" for number in range(2, len(used) + 3)))
    return next(f"?{name}" for name in names if name not in used)


def _called(name: str, failure: Failure) -> str:
    """Return a variable as the writer knows it: a step's value by the step that leads there."""
    if is_generated(name):
        for unit in failure.before:
            if unit.pattern is not None and unit.pattern.object == f"?{name}":
                return f"the value of {unit.pattern.predicate}"
    return f"?{name}"


def short(text: str, most: int = 80) -> str:
    """Return a text on one line, cut.

    Examples:
        >>> short("a   b c", 4)
        'a b…'
    """
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
