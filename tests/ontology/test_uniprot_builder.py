"""The builder's parts, on small real pieces of what the sources hold."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
from pathlib import Path

import pytest
from Bio import SwissProt
from pyoxigraph import RdfFormat, Store

from ontology.uniprot.builder.__main__ import main
from ontology.uniprot.builder.assemble import read_organism
from ontology.uniprot.builder.blast_v4 import read_sequences
from ontology.uniprot.builder.choose import REQUIRED, choose_humans
from ontology.uniprot.builder.entry import Entry
from ontology.uniprot.builder.evidence import ECO_OF_GO, read_evidence
from ontology.uniprot.builder.fasta import read_header
from ontology.uniprot.builder.flat_comments import Lookups
from ontology.uniprot.builder.flat_entries import add_record
from ontology.uniprot.builder.flat_features import CLASS_OF_KEY
from ontology.uniprot.builder.flat_names import read_names
from ontology.uniprot.builder.gene_ontology import closure
from ontology.uniprot.builder.sources import Source, SourceError, fetch
from ontology.uniprot.builder.statistics import describe
from ontology.uniprot.builder.terms import CORE, UNIPROT, Dataset, write_gzip
from ontology.uniprot.builder.variants import Disease, Variant, add_variants

# After P62258 (human 14-3-3 epsilon), cut short, with one line of each kind.
ENTRY = """\
ID   1433E_HUMAN             Reviewed;          40 AA.
AC   P62258; B3KY71;
DT   05-JUL-2004, integrated into UniProtKB/Swiss-Prot.
DT   05-JUL-2004, sequence version 1.
DT   12-OCT-2022, entry version 198.
DE   RecName: Full=14-3-3 protein epsilon;
DE            Short=14-3-3E;
GN   Name=YWHAE;
OS   Homo sapiens (Human).
OC   Eukaryota; Metazoa; Chordata; Craniata; Vertebrata; Euteleostomi; Mammalia.
OX   NCBI_TaxID=9606;
RN   [1]
RP   NUCLEOTIDE SEQUENCE [MRNA] (ISOFORM 1).
RX   PubMed=7644510; DOI=10.1073/pnas.92.17.7892;
RA   Conklin D.S., Galaktionov K., Beach D.;
RT   "14-3-3 proteins associate with cdc25 phosphatases.";
RL   Proc. Natl. Acad. Sci. U.S.A. 92:7892-7896(1995).
CC   -!- SUBUNIT: Homodimer. Heterodimerizes with YWHAZ.
CC       {ECO:0000269|PubMed:16376338}.
CC   -!- SUBCELLULAR LOCATION: Nucleus {ECO:0000269|PubMed:12917326}. Elsewhere.
DR   PDB; 2BR9; X-ray; 1.75 A; A=1-233.
DR   GO; GO:0005634; C:nucleus; IDA:UniProtKB.
PE   1: Evidence at protein level;
KW   Acetylation; Unheard of.
FT   CHAIN           1..40
FT                   /note="14-3-3 protein epsilon"
FT                   /id="PRO_0000058618"
FT   MOD_RES         2
FT                   /note="N-acetylaspartate"
FT                   /evidence="ECO:0000255"
FT   VARIANT         5
FT                   /note="E -> K (in dbSNP:rs1)"
FT                   /id="VAR_000001"
FT   VARIANT         6
FT                   /note="W -> K"
FT                   /id="VAR_000002"
FT   REGION          <1..7
FT                   /note="Open"
SQ   SEQUENCE   40 AA;  4600 MW;  07817CCBD1F75B26 CRC64;
     MDDREDLVYQ AKLAEQAERY DEMVESMKKV AGMDVELTVE
//
"""
LOOKUPS = Lookups({"Acetylation": 7}, {"nucleus": 191}, {}, {})
SEQUENCE = "MDDREDLVYQAKLAEQAERYDEMVESMKKVAGMDVELTVE"


def loaded(dataset: Dataset) -> Store:
    store = Store()
    quads = "\n".join(map(str, dataset.quads)).encode()
    store.load(input=quads, format=RdfFormat.N_QUADS)
    return store


def ask(store: Store, pattern: str) -> bool:
    prefixes = (
        "PREFIX up: <http://purl.uniprot.org/core/> PREFIX p: <http://purl.uniprot.org/> "
        "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> "
        "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "
        "PREFIX skos: <http://www.w3.org/2004/02/skos/core#> "
        "PREFIX obo: <http://purl.obolibrary.org/obo/> "
        "PREFIX faldo: <http://biohackathon.org/resource/faldo#> "
    )
    query = f"{prefixes} ASK {{ {pattern} }}"
    return bool(store.query(query, use_default_graph_as_union=True))


@pytest.fixture(scope="module")
def flat() -> tuple[Dataset, Store]:
    dataset = Dataset()
    add_record(dataset, next(SwissProt.parse(io.StringIO(ENTRY))), LOOKUPS)
    return dataset, loaded(dataset)


P = "<http://purl.uniprot.org/uniprot/P62258>"


@pytest.mark.parametrize(
    "pattern",
    [
        f'{P} a up:Protein ; up:mnemonic "1433E_HUMAN" ; up:reviewed true ; up:version ?v',
        f'{P} up:created "2004-07-05"^^<http://www.w3.org/2001/XMLSchema#date>',
        f'{P} up:recommendedName [ up:fullName "14-3-3 protein epsilon" ; up:shortName ?s ]',
        f'{P} up:encodedBy [ a up:Gene ; skos:prefLabel "YWHAE" ]',
        f"{P} up:organism <http://purl.uniprot.org/taxonomy/9606>",
        f"{P} up:replaces <http://purl.uniprot.org/uniprot/B3KY71>",
        f"{P} up:sequence [ a up:Simple_Sequence ; rdf:value '{SEQUENCE}' ; up:mass 4600 ]".replace(
            "4600", "'4600'^^<http://www.w3.org/2001/XMLSchema#int>"
        ),
        f"{P} up:classifiedWith <http://purl.uniprot.org/keywords/7>, obo:GO_0005634",
        f"{P} rdfs:seeAlso [ a up:Structure_Resource ; up:method up:X-Ray_Crystallography ]",
        f"{P} up:citation <http://purl.uniprot.org/citations/7644510>",
        "?c a up:Journal_Citation ; up:name 'Proc. Natl. Acad. Sci. U.S.A.' ; up:volume '92'",
        f"{P} up:annotation [ a up:Chain_Annotation ; up:range/faldo:end/faldo:position ?last ]",
        "<http://purl.uniprot.org/annotation/VAR_000001> up:substitution 'K' ; rdfs:seeAlso ?snp",
        "?s rdf:object obo:GO_0005634 ; up:attribution/up:evidence obo:ECO_0000314",
        "?s rdf:predicate up:annotation ; rdf:object [ a up:Subunit_Annotation ; "
        "rdfs:comment 'Homodimer.' ] ; "
        "up:attribution/up:source <http://purl.uniprot.org/citations/16376338>",
        f"{P} up:annotation/up:locatedIn/up:cellularComponent "
        "<http://purl.uniprot.org/locations/191>",
    ],
)
def test_facts_of_a_whole_entry(flat: tuple[Dataset, Store], pattern: str) -> None:
    assert ask(flat[1], pattern)


def test_what_is_unknown_or_disagrees_is_dropped_and_counted(flat: tuple[Dataset, Store]) -> None:
    dataset, store = flat
    assert not ask(store, "<http://purl.uniprot.org/annotation/VAR_000002> ?p ?o")
    assert not ask(store, "?a a up:Region_Annotation")
    assert dataset.tally == {
        "keywords without a known number dropped": 1,
        "subcellular locations without a known number dropped": 1,
        "features without an exact place dropped": 1,
        "flat-file changes whose residues disagree with the sequence dropped": 1,
    }


def test_what_entries_mention_is_noted_for_description(flat: tuple[Dataset, Store]) -> None:
    dataset = flat[0]
    assert (dataset.taxa, dataset.go, dataset.keywords) == ({9606}, {"GO:0005634"}, {"Acetylation"})
    assert dataset.databases == {"PDB", "dbSNP"}


def test_variants_are_checked_against_the_sequence() -> None:
    dataset = Dataset()
    diseases = {"DI-00085": Disease("DI-00085", "Alzheimer disease 1", "AD1", "", ())}
    variants = [
        Variant("VAR_1", "P62258", "M", 1, "V", "lpp", "rs63750671", ("DI-00085",)),
        Variant("VAR_2", "P62258", "G", 2, "V", "lbb", "", ()),
        Variant("VAR_3", "P62258", "D", 4000, "V", "us", "", ()),
    ]
    add_variants(Entry(dataset, "P62258"), SEQUENCE, variants, diseases, frozenset())
    store = loaded(dataset)
    assert ask(
        store,
        "p:annotation\\/VAR_1 a up:Natural_Variant_Annotation ; skos:related p:diseases\\/85 ; "
        "rdfs:comment 'In AD1; Likely pathogenic or pathogenic.' ; rdfs:seeAlso ?snp",
    )
    assert ask(store, "?a a up:Disease_Annotation ; up:disease p:diseases\\/85")
    assert not ask(store, "p:annotation\\/VAR_2 ?p ?o")
    assert dataset.tally["variants whose residue disagrees with the sequence dropped"] == 2


def test_names_of_contained_chains_keep_their_section() -> None:
    parts = read_names(
        "RecName: Full=Amyloid beta A4 protein; AltName: Full=PreA4; "
        "Contains: RecName: Full=N-APP; Contains: RecName: Full=C99; Flags: Precursor;"
    )
    assert [(p.section, p.kind, p.value) for p in parts] == [
        ("", "RecName", "Amyloid beta A4 protein"),
        ("", "AltName", "PreA4"),
        ("Contains 1", "RecName", "N-APP"),
        ("Contains 2", "RecName", "C99"),
    ]


def test_evidence_keeps_its_source() -> None:
    found = read_evidence("Nucleus {ECO:0000269|PubMed:92029, ECO:0000250|UniProtKB:P29360}.")
    assert [each.source for each in found] == [
        UNIPROT["citations/92029"],
        UNIPROT["uniprot/P29360"],
    ]
    assert all(code.startswith("ECO:") and len(code) == 11 for code in ECO_OF_GO.values())


def test_every_feature_key_has_a_class_of_the_schema(pack: Path) -> None:
    schema = Store()
    schema.load(path=str(pack / "schema.ttl"), format=RdfFormat.TURTLE)
    for kind in CLASS_OF_KEY.values():
        assert any(schema.quads_for_pattern(CORE[f"{kind}_Annotation"], None, None)), kind


@pytest.mark.parametrize(
    ("title", "reported"),
    [
        (
            "sp|Q6GZX4|001R_FRG3G Putative transcription factor 001R OS=Frog virus 3 "
            "(isolate Goorha) GN=FV3-001R PE=4 SV=1 Split=0 ",
            ("Q6GZX4", True, None, "Frog virus 3 (isolate Goorha)", "FV3-001R"),
        ),
        (
            "tr|W0FSK4|W0FSK4_9FLAV Genome polyprotein (Fragment) OS=Dengue virus 3 PE=4 SV=1",
            ("W0FSK4", False, "single", "Dengue virus 3", None),
        ),
    ],
)
def test_fasta_headers(title: str, reported: tuple[object, ...]) -> None:
    entry = read_header(title)
    assert entry is not None
    assert (entry.accession, entry.reviewed, entry.fragment, entry.organism, entry.gene) == reported
    assert read_header("UniRef100_A0 something") is None


def test_blast_database(tmp_path: Path) -> None:
    letters = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"
    residues = {"P04637": "MEEPQSDPSV", "P10636": "MAEPRQ", "A0A024R1X5": "MK"}
    headers, sequences = b"", b"\0"
    header_at, sequence_at = [0], [1]
    for accession, sequence in residues.items():
        headers += b"\x30\x80\x1a" + f"{accession}|GO:0005515".encode()
        sequences += bytes(letters.index(letter) for letter in sequence) + b"\0"
        header_at.append(len(headers))
        sequence_at.append(len(sequences))
    index = struct.pack(">ii", 4, 1)
    for text in (b"title", b"Jan 1, 2014"):
        index += struct.pack(">i", len(text)) + text
    index += struct.pack(">iqi", 3, 18, 10)
    index += struct.pack(">4I", *header_at) + struct.pack(">4I", *sequence_at)
    for ending, content in ((".pin", index), (".phr", headers), (".psq", sequences)):
        (tmp_path / f"base.fasta{ending}").write_bytes(content)
    assert read_sequences(tmp_path / "base.fasta") == residues
    assert read_sequences(tmp_path / "base.fasta", {"P10636"}) == {"P10636": "MAEPRQ"}


def test_closure_reaches_every_ancestor_over_every_path() -> None:
    parents = {"d": {"b", "c"}, "b": {"a"}, "c": {"a"}, "a": {"root"}}
    assert closure(parents, ["d"])["d"] == {"a", "b", "c", "root"}


def test_humans_that_sources_tell_most_of_come_first() -> None:
    few = Variant("VAR_1", "Q00001", "M", 1, "V", "lpp", "", ("DI-00001",))
    variants = {"Q00001": [few], "Q00002": [few] * 500, "P04637": [few] * 500}
    found = choose_humans(
        ["Q00001", "Q00002", "Q00003", "P04637"], variants, {"Q00003": 999}, set(), set(), 10
    )
    assert found == ["P04637", "Q00001"]
    assert set(REQUIRED) >= {"P04637"}


def test_organism_lines() -> None:
    assert read_organism("Drosophila melanogaster (Fruit fly).")[1] == "Fruit fly"
    assert read_organism("Bacillus subtilis (strain 168).") == (
        "Bacillus subtilis (strain 168)",
        "",
    )


def test_the_same_lines_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.nq.gz", tmp_path / "b.nq.gz"
    write_gzip(first, ["one", "two"])
    write_gzip(second, ["one", "two"])
    assert first.read_bytes() == second.read_bytes()
    assert gzip.decompress(first.read_bytes()) == b"one\ntwo\n"


def test_statistics_do_not_depend_on_the_order_of_facts(flat: tuple[Dataset, Store]) -> None:
    facts = sorted(flat[0].quads, key=str)
    reported = describe(facts, "https://example.org/sparql", "Sample", ["urn:label"])
    assert reported == describe(
        reversed(facts), "https://example.org/sparql", "Sample", ["urn:label"]
    )
    assert b"void:triples" in reported


def test_a_source_with_another_hash_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "thing-1.0-py3-none-any.whl"
    archive.write_bytes(b"not what was built from")
    with pytest.raises(SourceError, match="sha256"):
        fetch(Source("thing", "wheel", "1.0", "0" * 64), tmp_path)
    assert not (tmp_path / "unpacked").exists()


def test_an_unpacked_source_is_not_fetched_again(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    done = tmp_path / "unpacked" / "thing" / f".complete-{digest[:16]}"
    done.parent.mkdir(parents=True)
    done.touch()
    assert fetch(Source("thing", "deb", "1.0", digest), tmp_path) == done.parent


def test_a_wrong_number_of_proteins_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--cache", str(tmp_path), "--proteins", "many"])
    assert stopped.value.code == 2
    assert "'many' is neither a number nor 'all'" in capsys.readouterr().err
