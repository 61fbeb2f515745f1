"""French: regular forms, the words that inflect in rules, and what neighbours do to each other (l'homme, du, bel)."""

from __future__ import annotations

from collections.abc import Sequence

from unrolled.data.builtin.words import AGREEING, PEOPLE, Word, plain

_VOWELS = frozenset("aeiouâàéèêëîïôûùœæh")
_ELIDED = frozenset(["le", "la", "je", "me", "se", "ne", "que", "de"])
_CONTRACTED = {("de", "le"): "du", ("de", "les"): "des", ("à", "le"): "au", ("à", "les"): "aux"}


def plural(word: str) -> str:
    """The regular plural of a noun or a masculine adjective: ``cheval`` → ``chevaux``, ``bateau`` → ``bateaux``."""
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith("al"):
        return word[:-1] + "ux"
    return word + ("x" if word.endswith(("au", "eu")) and word != "bleu" else "s")


def feminine(adjective: str) -> str:
    """The regular feminine: ``heureux`` → ``heureuse``, ``cher`` → ``chère``, ``bon`` → ``bonne``."""
    for ending, changed in [("e", "e"), ("eux", "euse"), ("er", "ère"), ("en", "enne"), ("on", "onne"), ("el", "elle")]:
        if adjective.endswith(ending):
            return adjective[: -len(ending)] + changed
    return adjective + "e"


def noun(singular: str, many: str, gender: str, aspirated: bool) -> Word:
    forms = {"singular": singular, "plural": many or plural(singular)}
    return Word("noun", forms, gender={"m": "masculine", "f": "feminine"}[gender], aspirated=aspirated)


def adjective(masculine: str, woman: str = "", many: str = "", before_vowel: str = "") -> Word:
    woman = woman or feminine(masculine)
    forms = dict(zip(AGREEING, [masculine, woman, many or plural(masculine), woman + "s"], strict=True))
    return Word("adjective", forms, vowel={"masculine singular": before_vowel} if before_vowel else {})


def verb(infinitive: str, participle: str = "", present: Sequence[str] = ()) -> Word:
    """A verb in the present: regular in -er (manger too) and -ir (choisir) unless the six forms are given."""
    forms = dict(zip(PEOPLE, present or _present(infinitive), strict=True))
    forms |= {"infinitive": infinitive, "order": forms["second plural"]}
    if participle:
        forms |= {f"participle {place}": form for place, form in adjective(participle).forms.items()}
    return Word("verb", forms)


def _present(infinitive: str) -> list[str]:
    stem, ending = infinitive[:-2], infinitive[-2:]
    if ending == "ir":
        return [stem + end for end in ("is", "is", "it", "issons", "issez", "issent")]
    soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
    return [stem + "e", stem + "es", stem + "e", soft + "ons", stem + "ez", stem + "ent"]


def _determiner(forms: Sequence[str], vowel: Sequence[str] = ("", ""), article: bool = False) -> Word:
    before = {place: form for place, form in zip(AGREEING, vowel, strict=False) if form}
    return Word("adjective", dict(zip(AGREEING, forms, strict=True)), vowel=before, article=article)


INFLECTED = {
    "le": _determiner(["le", "la", "les", "les"], article=True),
    "un": _determiner(["un", "une", "des", "des"]),
    "ce": _determiner(["ce", "cette", "ces", "ces"], ["cet", ""]),
    "mon": _determiner(["mon", "ma", "mes", "mes"], ["", "mon"]),
    "son": _determiner(["son", "sa", "ses", "ses"], ["", "son"]),
    "votre": _determiner(["votre", "votre", "vos", "vos"]),
    "notre": _determiner(["notre", "notre", "nos", "nos"]),
    "leur": _determiner(["leur", "leur", "leurs", "leurs"]),
    "tout": _determiner(["tout", "toute", "tous", "toutes"]),
    "se": Word("verb", dict(zip(PEOPLE, ["me", "te", "se", "nous", "vous", "se"], strict=True))),
    "être": verb("être", "", ["suis", "es", "est", "sommes", "êtes", "sont"]),
    "avoir": verb("avoir", "", ["ai", "as", "a", "avons", "avez", "ont"]),
    "aller": verb("aller", "", ["vais", "vas", "va", "allons", "allez", "vont"]),
    "pouvoir": verb("pouvoir", "", ["peux", "peux", "peut", "pouvons", "pouvez", "peuvent"]),
    "devoir": verb("devoir", "", ["dois", "dois", "doit", "devons", "devez", "doivent"]),
}
"""Words that inflect when a rule names them."""


def literal(text: str) -> Word:
    """The word that a rule names; in double quotes, just this form: ``"le"`` is the pronoun."""
    return plain(text[1:-1]) if text.startswith('"') else INFLECTED.get(text) or plain(text)


_SMALL = [
    *("zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf"),
    *("dix", "onze", "douze", "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"),
]
_TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante", 80: "quatre-vingt"}


def number(value: int) -> Word:
    """A whole number from 0 to 99 in words, spelled as of 1990 (``vingt-et-un``); a final *un* agrees in gender."""
    if value < len(_SMALL):
        text = _SMALL[value]
    else:
        base = max(tens for tens in _TENS if tens <= value)
        rest = value - base
        join = "-et-" if rest in (1, 11) and base != 80 else "-"
        text = _TENS[base] + (join + _SMALL[rest] if rest else "s" * (base == 80))
    if text.endswith("un"):
        return _determiner([text, text + "e", text, text + "e"])
    return plain(text, aspirated=value in (8, 11))


def starts_with_vowel(text: str, word: Word) -> bool:
    """Whether elision and liaison happen before ``text``: a vowel or a mute h, unless the word says otherwise."""
    return text[:1].lower() in _VOWELS and not word.aspirated


def join(spelled: Sequence[tuple[str, Word, str]]) -> list[tuple[str, list[int]]]:
    """Words as they are written side by side, each with the places it came from; two for a contraction.

    ``spelled`` holds (form, word, key of the form). Elided words end in an apostrophe (``l'``), inverted pronouns begin
    with a hyphen (``-vous``, ``-t-il``).
    """
    written: list[tuple[str, list[int]]] = []
    for place, (text, word, key) in enumerate(spelled):
        after, follower, _ = spelled[place + 1] if place + 1 < len(spelled) else ("", word, "")
        vowel = starts_with_vowel(after, follower)
        if vowel and key in word.vowel:
            text = word.vowel[key]
        elif vowel and text in _ELIDED:
            text = text[:-1] + "'"
        before = written[-1][0] if written else ""
        if word.article and (before, text) in _CONTRACTED:
            written[-1] = (_CONTRACTED[before, text], [*written[-1][1], place])
            continue
        if text in ("-il", "-elle") and before[-1:] not in ("t", "d"):
            text = "-t" + text
        written.append((text, [place]))
    return written
