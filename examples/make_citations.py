"""Write an entity-resolution problem, citations of papers that are to be matched, as .mln and .db: the shape of Cora.

Records (citations) have words in their titles, authors and venues; asked is which records, authors, titles and venues
are the same. All words and records are drawn at random, the same for the same seed; nothing is copied from anywhere.

    python examples/make_citations.py 500 1 citations-500    # writes citations-500.mln and citations-500.db
    definetti marginals citations-500.mln --evidence citations-500.db --query "SameRecord(R1,R2)"
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

MODEL = """// Records that cite the same paper, and fields that are the same. Starred predicates are false where the
// evidence is silent; it leaves open (?) whether pairs that share a word are the same.
*Title(record, title)
*Author(record, author)
*Venue(record, venue)
*TitleWord(title, word)
*AuthorWord(author, word)
*VenueWord(venue, word)
*NearTitle(title, title)
*NearAuthor(author, author)
*NearVenue(venue, venue)
*Candidate(record, record)
*SameRecord(record, record)
*SameTitle(title, title)
*SameAuthor(author, author)
*SameVenue(venue, venue)

// fields that share words are more often the same
-1.6 NearTitle(t,u) ^ SameTitle(t,u)
-1.2 NearAuthor(a,b) ^ SameAuthor(a,b)
-0.8 NearVenue(v,w) ^ SameVenue(v,w)
0.9 NearTitle(t,u) ^ TitleWord(t,w) ^ TitleWord(u,w) ^ SameTitle(t,u)
1.1 NearAuthor(a,b) ^ AuthorWord(a,w) ^ AuthorWord(b,w) ^ SameAuthor(a,b)
0.7 NearVenue(v,w) ^ VenueWord(v,x) ^ VenueWord(w,x) ^ SameVenue(v,w)

// records whose fields are the same are the same, and the other way round
-2.5 Candidate(r,s) ^ SameRecord(r,s)
1.3 Candidate(r,s) ^ Title(r,t) ^ Title(s,u) ^ SameTitle(t,u) ^ SameRecord(r,s)
0.9 Candidate(r,s) ^ Author(r,a) ^ Author(s,b) ^ SameAuthor(a,b) ^ SameRecord(r,s)
0.5 Candidate(r,s) ^ Venue(r,v) ^ Venue(s,w) ^ SameVenue(v,w) ^ SameRecord(r,s)

// transitivity, softly, among candidates
1.5 Candidate(r,s) ^ Candidate(s,t) ^ Candidate(r,t) ^ SameRecord(r,s) ^ SameRecord(s,t) => SameRecord(r,t)
"""


def corrupted(rng: random.Random, words: list[str], vocabulary: list[str]) -> list[str]:
    """Some words lost, some exchanged."""
    kept = [word if rng.random() > 0.12 else rng.choice(vocabulary) for word in words if rng.random() > 0.1]
    return kept or words[:1]


def facts(records: int, seed: int) -> Iterator[str]:
    """Evidence about so many records of a third as many papers."""
    rng = random.Random(seed)
    vocabulary = {kind: [f"{kind}{k}" for k in range(size)] for kind, size in (("T", 900), ("A", 400), ("V", 120))}
    papers = [
        {"T": rng.sample(vocabulary["T"], 6), "A": rng.sample(vocabulary["A"], 2), "V": rng.sample(vocabulary["V"], 3)}
        for _ in range(max(1, records // 3))
    ]
    fields: dict[str, dict[tuple[str, ...], int]] = {"T": {}, "A": {}, "V": {}}
    names = {"T": "Title", "A": "Author", "V": "Venue"}
    of_record = []
    for number in range(1, records + 1):
        paper = rng.choice(papers)
        own = {}
        for kind, name in names.items():
            words = tuple(sorted(set(corrupted(rng, paper[kind], vocabulary[kind]))))
            own[kind] = fields[kind].setdefault(words, len(fields[kind]) + 1)
            yield f"{name}(R{number},{name}{own[kind]})"
        of_record.append(own)
    for kind, known in fields.items():
        name = names[kind]
        by_word: dict[str, list[int]] = {}
        for words, number in known.items():
            for word in words:
                yield f"{name}Word({name}{number},{word})"
                by_word.setdefault(word, []).append(number)
        shared = {(a, b) for some in by_word.values() for a in some for b in some if a != b}
        for a, b in sorted(shared):
            yield f"Near{name}({name}{a},{name}{b})"
            yield f"?Same{name}({name}{a},{name}{b})"
        fields[kind] = {("near",): 0}
        if kind == "T":
            near = shared
    same = {(r, s) for r, x in enumerate(of_record, 1) for s, y in enumerate(of_record, 1)
            if r != s and (x["T"] == y["T"] or (x["T"], y["T"]) in near)}  # fmt: skip
    for r, s in sorted(same):
        yield f"Candidate(R{r},R{s})"
        yield f"?SameRecord(R{r},R{s})"


def citations(records: int, seed: int = 1) -> tuple[str, str]:
    """The model and its evidence."""
    return MODEL, "\n".join(facts(records, seed)) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: make_citations.py RECORDS SEED NAME")
    model, evidence = citations(int(sys.argv[1]), int(sys.argv[2]))
    for suffix, text in ((".mln", model), (".db", evidence)):
        with open(sys.argv[3] + suffix, "w", encoding="utf-8") as file:
            file.write(text)
