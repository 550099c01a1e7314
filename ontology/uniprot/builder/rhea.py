"""What stands for Rhea's endpoint: reactions that GO or an entry names by their Rhea number.

A GO term of molecular function that refers to one Rhea reaction is defined by that reaction:
"Catalysis of the reaction: A + B = C + D." So number and equation are GO's word, and the EC
numbers are those that the same term refers to. Entries from flat files tell the equation
themselves. Of a participant, the ChEBI number is told where ChEBI lists its name as UniProt's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyoxigraph import Literal, NamedNode

from .gene_ontology import GeneOntology
from .gene_ontology_endpoint import CrossReferences
from .obo import Compound
from .terms import CORE, GO, OWL, RDFS, UNIPROT, XSD, Dataset, Fact, Graph, Namespace, digest, text

__all__ = ["RHEA_GRAPH", "Reaction", "add_reactions", "read_equation", "read_reactions"]

RHEA = Namespace("http://rdf.rhea-db.org/")
RHEA_GRAPH = NamedNode("https://sparql.rhea-db.org/rhea")
_CLASSES = {
    "Reaction": "Reaction",
    "ReactionSide": "Reaction side",
    "ReactionParticipant": "Reaction participant",
    "Compound": "Compound",
    "SmallMolecule": "Small molecule",
}
_LONGEST_NAME = 120
# "H+ phosphate" and "H20": slips of the definitions, which would pass for compounds.
_SLIP = re.compile(r"\+ |^H20$")


@dataclass(frozen=True)
class Reaction:
    """A reaction as the sources tell it.

    Args:
        number: Rhea number.
        equation: Both sides, as Rhea writes equations.
        enzymes: EC numbers.
        terms: GO ids of the terms that refer to it.
    """

    number: str
    equation: str
    enzymes: frozenset[str] = field(default=frozenset())
    terms: frozenset[str] = field(default=frozenset())

    @property
    def sides(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """The participants of the left and of the right side: coefficient and name."""
        left, right = (_participants(side) for side in self.equation.split(" = "))
        return left, right


def read_equation(definition: str) -> str | None:
    """The equation in the definition of a GO term, in Rhea's spelling of formulas.

    Examples:
        >>> read_equation("Catalysis of the reaction: L-malate + NAD+ = CO(2) + NADH. Slow.")
        'L-malate + NAD(+) = CO2 + NADH'
        >>> read_equation("Catalysis of the hydrolysis of ester bonds.")
    """
    found = re.match(r"Catalysis of the reaction: (.+?)\.(?:\s|$)", definition)
    if found is None:
        return None
    sides = found[1].split(" = ")
    # Remarks, markup and halves are not how Rhea writes equations.
    if len(sides) != 2 or re.search(r"[;<]|\d/\d ", found[1]):
        return None
    written = [[f"{n} {name}".strip() for n, name in _participants(side)] for side in sides]
    names = [name for side in written for name in side]
    if not all(name and len(name) <= _LONGEST_NAME and not _SLIP.search(name) for name in names):
        return None
    return " = ".join(" + ".join(side) for side in written)


def _participants(side: str) -> list[tuple[str, str]]:
    found = []
    for part in side.split(" + "):
        match = re.fullmatch(r"(?:(\d+|n) )?(.*)", part.strip())
        assert match is not None  # the pattern fits everything
        found.append((match[1] or "", _spelling(match[2])))
    return found


def _spelling(name: str) -> str:
    # GO writes H(2)O or H2O, NAD+ or NAD(+); Rhea puts brackets around charges alone.
    plain = re.sub(r"\b([A-Z][a-z]?)\((\d+)\)(?=$|[A-Z(])", r"\1\2", name)
    plain = re.sub(r"(?<=[A-Za-z0-9)])\((\d+)\)(?=$|\(\d*[+-]\))", r"\1", plain)
    return re.sub(r"^(NADP?|H|NH4|Na|K)\+$", r"\1(+)", plain)


def read_reactions(
    ontology: GeneOntology,
    references: Mapping[str, CrossReferences],
    entries: Iterable[Fact],
    dataset: Dataset,
) -> list[Reaction]:
    """The reactions that GO terms define or entries name.

    Args:
        ontology: Definitions of terms.
        references: Cross-references of terms.
        entries: Facts about entries, with their catalytic activities.
        dataset: Where it is counted what is left out.
    """
    found: dict[str, Reaction] = {}
    several: set[str] = set()
    for term, databases in sorted(references.items()):
        numbers = databases.get("RHEA", [])
        if not numbers or term not in ontology.terms:
            continue
        equation = read_equation(ontology.terms[term][2])
        if len(numbers) > 1 or equation is None:
            dataset.count("GO terms with Rhea numbers but no single equation left out")
            continue
        number = numbers[0]
        if number in found:
            several.add(number)
        enzymes = frozenset(
            each for each in databases.get("EC", ()) if re.fullmatch(r"\d+\.\d+\.\d+\.n?\d+", each)
        )
        found[number] = Reaction(number, equation, enzymes, frozenset({term}))
    for number in sorted(several):
        dataset.count("reactions that several GO terms define left out")
        del found[number]
    for told in _from_entries(entries):
        known = found.get(told.number, told)
        found[told.number] = Reaction(
            told.number, told.equation, known.enzymes | told.enzymes, known.terms
        )
    return [found[number] for number in sorted(found, key=int)]


def _from_entries(facts: Iterable[Fact]) -> list[Reaction]:
    told: dict[str, dict[str, set[str]]] = {}
    for subject, predicate, value, _ in facts:
        if predicate in (CORE["catalyzedReaction"], CORE["enzymeClass"], RDFS["label"]):
            told.setdefault(subject.value, {}).setdefault(predicate.value, set()).add(value.value)
    found: dict[str, Reaction] = {}
    for own in told.values():
        for iri in own.get(CORE["catalyzedReaction"].value, ()):
            number = iri.removeprefix(RHEA)
            (label,) = own[RDFS["label"].value]
            # Where a name was divided at the end of a line.
            equation = re.sub(r"(?<=\S)- (?=[a-z])", "-", label)
            enzymes = {ec.rsplit("/", 1)[1] for ec in own.get(CORE["enzymeClass"].value, ())}
            before = found.get(number)
            found[number] = Reaction(
                number, equation, frozenset(enzymes) | (before.enzymes if before else frozenset())
            )
    return list(found.values())


def add_reactions(
    dataset: Dataset, reactions: Iterable[Reaction], compounds: Mapping[str, Compound]
) -> None:
    """Writes reactions, their sides and their participants in Rhea's shape.

    Args:
        dataset: Where the facts go.
        reactions: The reactions.
        compounds: ChEBI entries by the name that UniProt gives them.
    """
    graph = Graph(RHEA_GRAPH, dataset.quads)
    for name, label in _CLASSES.items():
        graph.type(RHEA[name], OWL["Class"])
        graph.add(RHEA[name], RDFS["label"], text(label))
    graph.add(RHEA["SmallMolecule"], RDFS["subClassOf"], RHEA["Compound"])
    named: set[str] = set()
    for reaction in reactions:
        node = RHEA[reaction.number]
        graph.add(node, RDFS["subClassOf"], RHEA["Reaction"])
        graph.add(node, RHEA["id"], _integer(reaction.number))
        graph.add(node, RHEA["accession"], text(f"RHEA:{reaction.number}"))
        graph.add(node, RHEA["equation"], text(reaction.equation))
        graph.add(node, RDFS["label"], text(reaction.equation))
        for number in reaction.enzymes:
            graph.add(node, RHEA["ec"], UNIPROT[f"enzyme/{number}"])
        for term in reaction.terms:
            graph.add(node, RDFS["seeAlso"], GO[term.replace(":", "_")])
        left, right = RHEA[f"{reaction.number}_L"], RHEA[f"{reaction.number}_R"]
        for at, (side, other, parts) in enumerate(
            ((left, right, reaction.sides[0]), (right, left, reaction.sides[1])), start=1
        ):
            graph.add(node, RHEA["side"], side)
            graph.add(side, RDFS["subClassOf"], RHEA["ReactionSide"])
            graph.add(side, RHEA["curatedOrder"], _integer(str(at)))
            graph.add(side, RHEA["transformableTo"], other)
            for coefficient, name in parts:
                named.add(name)
                part = RHEA[f"Participant_{reaction.number}_compound_{_key(name)}"]
                graph.add(side, RHEA["contains"], part)
                graph.add(side, RHEA[f"contains{coefficient.upper() or 1}"], part)
                graph.add(part, RDFS["subClassOf"], RHEA["ReactionParticipant"])
                graph.add(part, RHEA["compound"], RHEA[f"Compound_{_key(name)}"])
        dataset.count("reactions")
    for name in sorted(named):
        _add_compound(graph, name, compounds.get(name))
    dataset.count("compounds", len(named))
    dataset.count("compounds with a ChEBI number", len(named & compounds.keys()))


def _add_compound(graph: Graph, name: str, known: Compound | None) -> None:
    node = RHEA[f"Compound_{_key(name)}"]
    graph.add(node, RHEA["name"], text(name))
    if known is None:
        graph.add(node, RDFS["subClassOf"], RHEA["Compound"])
        return
    graph.add(node, RDFS["subClassOf"], RHEA["SmallMolecule"])
    graph.add(node, RHEA["accession"], text(f"CHEBI:{known.number}"))
    graph.add(node, RHEA["chebi"], GO[f"CHEBI_{known.number}"])
    if known.formula:
        graph.add(node, RHEA["formula"], text(known.formula))


def _key(name: str) -> str:
    return digest(name)[:10]


def _integer(value: str) -> Literal:
    return Literal(value, datatype=XSD["integer"])
