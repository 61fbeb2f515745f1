from table_stepper import TreeModel, batch

from unrolled.base.protocol import BEGIN, END, PAD
from unrolled.search import SearchSettings, decode


def test_follows_the_best_allowed_symbol():
    model, source = TreeModel(seed=8, vocabulary_size=11, end_bias=-1.0), (4, 7, END)
    said: list[int] = []
    while len(said) < 9:
        logs = model.log_probs(source, tuple(said)).copy()
        logs[[PAD, BEGIN]] = -1e9
        best = int(logs.argmax())
        if best == END:
            break
        said.append(best)
    found = decode(model, *batch([list(source)]), SearchSettings(kind="argmax", max_length=9))[0]
    assert len(said) > 1
    assert [hypothesis.ids for hypothesis in found] == [said]
    assert max(model.asked) == 3  # the best one, and PAD and BEGIN might be better


def test_of_equals_the_smallest_id_is_said_whatever_the_engine_puts_first():
    class Backwards(TreeModel):
        def step(self, last_ids, state, k):
            found = super().step(last_ids, state, k)
            return found._replace(ids=found.ids[:, ::-1])

    for kind in ("argmax", "beam"):
        search = SearchSettings(kind=kind, beam=1, max_length=3, min_length=3, ban_unknown=True)
        assert decode(Backwards(vocabulary_size=9, grid=100.0), *batch([[5, END]]), search)[0][0].ids == [4, 4, 4]
