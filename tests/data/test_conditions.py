"""Conditioning vectors from a file: found by key, width without reading, bad files told."""

import numpy as np
import pytest
from pictures import truncate

from study.data import conditions
from study.errors import UserError


def test_rows_are_found_by_key(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, keys=np.array(["b", "a", "c"]), values=np.arange(6).reshape(3, 2))
    assert conditions.read_vector_width(path) == 2
    assert conditions.read_condition_vectors(path, ["c", "b"]).tolist() == [[4.0, 5.0], [0.0, 1.0]]


def test_a_key_is_found_however_its_accents_are_spelled(tmp_path):
    path = tmp_path / "a.npz"
    keys = ["Mu\u0308ller", "M\u00fcller", "Za\u0308hler"]
    np.savez(path, keys=np.array(keys), values=np.arange(3)[:, None])
    assert conditions.read_condition_vectors(path, [*keys, "Z\u00e4hler"]).tolist() == [[0.0], [1.0], [2.0], [2.0]]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"keys": ["a"], "vectors": [[1.0]]}, "values.npy"),
        ({"values": [[1.0]]}, "keys"),
        ({"keys": ["a"], "values": [1.0]}, r"`values` has the shape \(1,\)"),
        ({"keys": ["a", "b"], "values": [[1.0]]}, r"`keys` has the shape \(2,\)"),
        ({"keys": ["a", "a"], "values": [[1.0], [2.0]]}, "1 of its keys occur twice"),
        ({"keys": ["b"], "values": [[1.0]]}, "no vector for 1 of 1 samples, such as 'a'; one of its keys is 'b'"),
        ({"keys": ["a"], "values": [[np.nan]]}, "the vector of 'a' is not finite"),
        ({"keys": ["a"], "values": [[1e308]]}, r"the vector of 'a' .* a number above 3\.4e\+38"),
        ({"keys": ["a"], "values": [["b"]]}, "`values` is of type <U1, floats or integers are needed"),
        ({"keys": np.array(["a"], object), "values": [[1.0]]}, "not readable"),
    ],
)
def test_bad_files(tmp_path, arrays, message):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(UserError, match=message):
        conditions.read_condition_vectors(path, ["a"])


def test_a_file_cut_short_and_one_that_is_no_archive(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, keys=["a"], values=[[1.0]])
    truncate(path)
    for _ in range(2):
        with pytest.raises(UserError, match=r"a\.npz: not readable: .*An \.npz with"):
            conditions.read_vector_width(path)
        path.write_text("no archive")


def test_a_byte_that_changed_is_told(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, keys=["a"], values=np.random.default_rng(0).normal(size=(1, 100)))
    whole = path.read_bytes()
    told = []
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            assert conditions.read_condition_vectors(path, ["a"]).shape == (1, 100)
        except UserError as error:
            told.append(str(error))
    assert len(told) > 50
    assert all(message.startswith(f"{path}: ") for message in told)
