import random
import re
from importlib.resources import files
from itertools import islice

import pytest

from unrolled.base.errors import DataError, SettingsError, UsageError
from unrolled.data.builtin import BUILTIN, Example, make
from unrolled.data.builtin.english import literal
from unrolled.data.builtin.french import number, verb
from unrolled.data.builtin.grammar import Drawn, Entry, Grammar
from unrolled.data.builtin.phrases import LONGEST, SHORTEST, distinct, grammar, translations
from unrolled.data.builtin.words import PEOPLE, Agreement, plain

RULES = (files("unrolled.data.builtin") / "phrases.rules.txt").read_text("utf-8")

# Written by hand, not by the grammar.
PAIRS = """
the laws on the French economic crisis were signed. | les lois sur la crise économique française ont été signées.
the big red wooden box | la grande boîte rouge en bois
the new European economic agreements | les nouveaux accords économiques européens
a beautiful man | un bel homme
an old friend | un vieil ami
some old friends | de vieux amis
a new agreement | un nouvel accord
this big hero | ce grand héros
this hero | ce héros
this hospital | cet hôpital
this school | cette école
a beautiful owl | un beau hibou
some beautiful horses | de beaux chevaux
some black horses | des chevaux noirs
many eggs | beaucoup d'œufs
many beans | beaucoup de haricots
the man's dog | le chien de l'homme
the hero's dog | le chien du héros
the heroine's dog | le chien de l'héroïne
Anne's clock | l'horloge d'Anne
my sister's car | la voiture de ma sœur
the kitchen table | la table de cuisine
the red office lamp | la lampe de bureau rouge
eighty-one white houses | quatre-vingt-une maisons blanches
eighty strong horses | quatre-vingts chevaux forts
seventy-one small owls | soixante-et-onze petits hiboux
ninety-nine blue umbrellas | quatre-vingt-dix-neuf parapluies bleus
the eleven oranges | les onze oranges
I see it. | je le vois.
I love her. | je l'aime.
we love them. | nous les aimons.
he looks for us. | il nous cherche.
I give him the tool. | je lui donne l'outil.
you give them the tools. | vous leur donnez les outils.
Marie gives the tool to the men. | Marie donne l'outil aux hommes.
Marie gives the tool to the hero. | Marie donne l'outil au héros.
Marie gives the tool to the woman. | Marie donne l'outil à la femme.
she wants to eat an apple. | elle veut manger une pomme.
we can see them. | nous pouvons les voir.
they must listen to me. | ils doivent m'écouter.
I am going to buy it. | je vais l'acheter.
they do not see the cat. | ils ne voient pas le chat.
I do not love him. | je ne l'aime pas.
she never hides it. | elle ne le cache jamais.
he no longer lives in Japan. | il n'habite plus au Japon.
he does not want to work. | il ne veut pas travailler.
she cannot give him the hat. | elle ne peut pas lui donner le chapeau.
Paul does not eat any eggs. | Paul ne mange pas d'œufs.
Paul does not eat any meat. | Paul ne mange pas de viande.
Paul eats some meat. | Paul mange de la viande.
Paul eats some bread. | Paul mange du pain.
Paul drinks some water. | Paul boit de l'eau.
I get up. | je me lève.
we get dressed. | nous nous habillons.
you do not wake up. | vous ne vous réveillez pas.
they want to wake up. | ils veulent se réveiller.
he is going to get dressed. | il va s'habiller.
do you see the bridge? | voyez-vous le pont ?
does she eat the cake? | mange-t-elle le gâteau ?
do they cook the cakes? | cuisinent-ils les gâteaux ?
does Anne love the dog? | est-ce qu'Anne aime le chien ?
do I work in the kitchen? | est-ce que je travaille dans la cuisine ?
where does he work? | où travaille-t-il ?
what do you choose? | que choisissez-vous ?
what does she write? | qu'écrit-elle ?
what does the woman eat? | que mange la femme ?
how many tables do we buy? | combien de tables achetons-nous ?
how many umbrellas does he buy? | combien de parapluies achète-t-il ?
how many tools does he buy? | combien d'outils achète-t-il ?
how old is the king? | quel âge a le roi ?
is the actress tired? | est-ce que l'actrice est fatiguée ?
are the heroes hungry? | est-ce que les héros ont faim ?
where is the clock? | où est l'horloge ?
are they tired? | sont-ils fatigués ?
is she tired? | est-elle fatiguée ?
who does not hear the owl? | qui n'entend pas le hibou ?
give her the old hat! | donnez-lui le vieux chapeau !
do not give me the hat! | ne me donnez pas le chapeau !
eat the fresh apples! | mangez les pommes fraîches !
she is happy. | elle est heureuse.
the actresses are happy. | les actrices sont heureuses.
Anne and Marie are tired. | Anne et Marie sont fatiguées.
Anne and Paul are tired. | Anne et Paul sont fatigués.
I am hungry. | j'ai faim.
we are not afraid of the horse. | nous n'avons pas peur du cheval.
he is afraid of the owls. | il a peur des hiboux.
she is twenty-one years old. | elle a vingt-et-un ans.
the queen is more intelligent than the king. | la reine est plus intelligente que le roi.
the queen is as intelligent as her brother. | la reine est aussi intelligente que son frère.
the laws were adopted in March 1990. | les lois ont été adoptées en mars 1990.
there is a mouse behind the school. | il y a une souris derrière l'école.
there are three mice in front of the old village. | il y a trois souris devant le vieux village.
he sleeps near the hotel. | il dort près de l'hôtel.
he sleeps near the gardens. | il dort près des jardins.
he sleeps at the museum. | il dort au musée.
he sleeps on the beach every day. | il dort sur la plage tous les jours.
the men who sleep love the woman whom I invite. | les hommes qui dorment aiment la femme que j'invite.
the village where she lives is famous. | le village où elle habite est célèbre.
Paul misses the queen. | la reine manque à Paul.
she always eats her apple. | elle mange toujours sa pomme.
she always eats her orange. | elle mange toujours son orange.
my mother sings because my sister dances. | ma mère chante parce que ma sœur danse.
my mother sings because he dances. | ma mère chante parce qu'il danse.
"""


@pytest.fixture(scope="module")
def some() -> list[Example]:
    return list(islice(distinct(7), 4000))


@pytest.mark.parametrize("pair", PAIRS.strip().splitlines())
def test_phrases_written_by_hand(pair):
    english, french = pair.split(" | ")
    assert [found.target for found in translations(english)] == [french]


def words_linked(english: str) -> set[tuple[str, str]]:
    (found,) = translations(english)
    return {(found.source_words[i], found.target_words[j]) for i, j in found.links}


@pytest.mark.parametrize(
    ("english", "links"),
    [
        ("she does not see him.", "she-elle does-voit not-ne not-pas see-voit him-le .-."),
        ("does Anne sleep?", "does-est-ce does-qu' Anne-Anne sleep-dort ?-?"),
        ("do you eat the cake?", "do-mangez you--vous eat-mangez the-le cake-gâteau ?-?"),
        ("he looks for the man.", "he-il looks-cherche for-cherche the-l' man-homme .-."),
        ("the hero's dog", "the-du hero-héros 's-le 's-du dog-chien"),
        ("he gets up.", "he-il gets-se gets-lève up-se up-lève .-."),
        ("Paul misses the queen.", "Paul-Paul misses-manque misses-à the-la queen-reine .-."),
        ("many eggs sleep.", ""),
        ("some bread", ""),
        ("Paul eats some bread.", "Paul-Paul eats-mange some-du bread-pain .-."),
        ("I am going to buy it.", "I-je am-vais going-vais to-vais buy-acheter it-l' .-."),
        ("the new European social law", "the-la new-nouvelle European-européenne social-sociale law-loi"),
        ("he is eighty-one years old.", "he-il is-a eighty-one-quatre-vingt-un years-ans old-ans .-."),
    ],
)
def test_links_written_by_hand(english, links):
    found = translations(english)
    if not links:
        assert found == []
        return
    expected = {re.fullmatch(r"(eighty-one|[^-]+)-(.+)", link).groups() for link in links.split()}
    assert words_linked(english) == expected


def test_the_sentence_that_made_attention_famous():
    (found,) = translations("the agreement on the European economic area was signed in August 1992.")
    assert found.target == "l'accord sur la zone économique européenne a été signé en août 1992."
    block = [(4, 6), (5, 5), (6, 4)]
    was = [(7, 7), (7, 8)]
    assert found.links == ((0, 0), (1, 1), (2, 2), (3, 3), *block, *was, *((n, n + 1) for n in range(8, 13)))


def test_one_phrase_has_one_translation_however_it_is_derived(some):
    for phrase in some[:250]:
        (found,) = translations(phrase.source)
        assert found == phrase


def test_every_word_is_linked_and_has_its_place(some):
    for phrase in some:
        assert {i for i, _ in phrase.links} == set(range(len(phrase.source_words)))
        assert {j for _, j in phrase.links} == set(range(len(phrase.target_words)))
        for text, spans in ((phrase.source, phrase.source_spans), (phrase.target, phrase.target_spans)):
            ends = [0, *(end for _, end in spans)]
            gaps = [text[end:start] for end, (start, _) in zip(ends, spans, strict=False)]
            assert set(gaps) <= {"", " "}
            assert all(start < end for start, end in spans)
            assert ends[-1] == len(text)


def test_lengths(some):
    assert {len(phrase.source_words) for phrase in some} == set(range(SHORTEST, LONGEST + 1))


def test_french_is_elided_and_contracted(some):
    for phrase in some:
        for word, after in zip(phrase.target_words, phrase.target_words[1:], strict=False):
            vowel = after[0].lower() in "aeiouhéèêîâôœ" and not after.startswith(
                ("hibou", "héros", "haricot", "onze", "huit")
            )
            if word in ("le", "la", "je", "me", "se", "ne", "que", "de", "ce", "ma", "sa", "beau", "nouveau", "vieux"):
                plural = word == "vieux" and after.endswith(("s", "x"))
                assert not vowel or plural, phrase
            if word.endswith("'") or word in ("cet", "bel", "nouvel", "vieil"):
                assert vowel, phrase
            assert (word, after) != ("à", "les")
        assert not re.search(r"\b(de|à) les? (?!\w+er\b)", phrase.target), phrase


def test_negation_has_two_parts(some):
    denied = [phrase for phrase in some if {"ne", "n'"} & set(phrase.target_words)]
    assert len(denied) > 200
    for phrase in denied:
        for place, word in enumerate(phrase.target_words):
            if word in ("ne", "n'"):
                assert {"pas", "plus", "jamais"} & set(phrase.target_words[place + 2 :])
                assert {"not", "never", "no", "cannot"} & {
                    phrase.source_words[i] for i, j in phrase.links if j == place
                }


def test_there_is_much_to_learn(some):
    assert len({word for phrase in some for word in phrase.source_words}) > 400
    assert len({word for phrase in some for word in phrase.target_words}) > 500
    others = {phrase.source for phrase in islice(distinct(8), 4000)}
    assert sum(phrase.source in others for phrase in some) < 1000  # chance meetings: the phrases are not used up


def test_splits_share_nothing_and_follow_from_the_seed():
    built = make("phrases", seed=3, size=300)
    assert (len(built.train), len(built.valid), len(built.test)) == (300, 30, 30)
    sources = [phrase.source for split in built for phrase in split]
    assert len(set(sources)) == 360
    assert make("phrases", seed=3, size=300) == built
    assert make("phrases", seed=4, size=300).train != built.train
    drawn = {phrase.source for phrase in islice(distinct(3), 120)}  # what comes first is what comes often
    assert 10 < len(drawn & {phrase.source for phrase in (*built.test, *built.valid)}) < 30  # it goes to all splits


def test_capitals_are_a_setting():
    small, large = make("phrases", size=50), make({"kind": "phrases", "capitals": True}, size=50)
    for plainly, written in zip(small.train, large.train, strict=True):
        sentence = plainly.source[-1] in ".?!"
        assert written.source[1:] == plainly.source[1:]
        assert written.source[0] == (plainly.source[0].upper() if sentence else plainly.source[0])
        assert written.links == plainly.links


def test_links_follow_another_division_into_words():
    (found,) = translations("the man is eighty-one years old.")
    assert found.target == "l'homme a quatre-vingt-un ans."
    source = [(0, 3), (4, 7), (8, 10), (11, 17), (17, 18), (18, 21), (22, 27), (28, 31), (31, 32)]
    target = [(0, 2), (2, 7), (8, 9), (10, 16), (16, 25), (26, 29), (29, 30)]
    assert found.links_between(source, target) == {
        *((0, 0), (1, 1), (2, 2), (3, 3), (3, 4), (4, 3), (4, 4), (5, 3), (5, 4), (6, 5), (7, 5), (8, 6)),
    }
    assert found.links_between(found.source_spans, found.target_spans) == set(found.links)


def test_french_verbs_and_numbers():
    manger = verb("manger")
    assert [manger.forms[place] for place in PEOPLE] == ["mange", "manges", "mange", "mangeons", "mangez", "mangent"]
    assert verb("commencer").forms["first plural"] == "commençons"
    assert verb("choisir").forms["third plural"] == "choisissent"
    feminine = Agreement("feminine", "plural")
    written = {value: number(value).spell(feminine, None) for value in (1, 21, 60, 71, 77, 80, 81, 91, 99)}
    assert list(written.values()) == [
        *("une", "vingt-et-une", "soixante", "soixante-et-onze", "soixante-dix-sept", "quatre-vingts"),
        *("quatre-vingt-une", "quatre-vingt-onze", "quatre-vingt-dix-neuf"),
    ]


def test_what_the_grammar_does_not_know_has_no_translation():
    assert translations("the colourless ideas sleep.") == []
    assert translations("the dog sleep.") == []  # the form exists, the agreement does not hold
    assert translations("") == []


def grammar_of(rules: str) -> Grammar:
    return Grammar(rules, {"Noun": [Entry(((plain("cat"),), (plain("chat"),)))]}, (literal, plain))


def test_the_notation():
    rules = "Start\n  the Noun_1 of_1 Noun2 | Noun2 Noun le\n"
    derived = grammar_of(rules.replace("_1", "")).derive  # one word more on the left
    with pytest.raises(DataError, match="2 words without a digit on one side and 1 on the other"):
        derived("Start", Drawn(random.Random(0)))
    with pytest.raises(DataError, match="neither rules nor words for 'Verb'"):
        grammar_of("Start\n  Verb\n").derive("Start", Drawn(random.Random(0)))
    with pytest.raises(DataError, match="cannot read 'a_b'"):
        grammar_of("Start\n  a_b\n").derive("Start", Drawn(random.Random(0)))


def test_every_phrase_of_the_rules_is_reached():
    draw = Drawn(random.Random(1))
    used = grammar()
    for _ in range(4000):
        used.derive("Start", draw)
    heads = {head.partition("(")[0] for head in re.findall(r"^(?:domain )?([A-Z]\w+\S*)$", RULES, re.M)}
    assert heads == {symbol.partition("(")[0] for symbol in used._phrases}


def test_a_wrong_call_says_what_is_known():
    assert list(BUILTIN) == ["dates", "g2p", "phrases"]
    with pytest.raises(SettingsError, match=r"no built-in data set is called 'phrase'\. Did you mean 'phrases'\?"):
        make("phrase")
    with pytest.raises(UsageError, match="size 0 was given; at least 1"):
        make("phrases", size=0)
