"""A `config.json` is what somebody put there: an odd one must not cost the diagnosis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from forensics.memory.model_config import config_beside, read_config
from forensics.memory.model_shape import ShapeError
from forensics.pipeline import analyze
from forensics.rules import Settings

LOG = Path(__file__).parents[2] / "fixtures/sglang-glm5.log"
ODD = [
    "",
    "[]",
    "7",
    "[" * 100_000,
    '{"text_config": ["a"]}',
    '{"text_config": "a"}',
    '{"architectures": 5, "model_type": []}',
    '{"architectures": [[1]], "max_position_embeddings": "many"}',
    '{"hidden_size": -1, "num_attention_heads": 0, "max_position_embeddings": 1e400}',
    '{"num_attention_heads": [], "vocab_size": {}, "kv_lora_rank": "x", "n_routed_experts": true}',
]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_an_odd_configuration_changes_no_verdict(tmp_path: Path, text: str) -> None:
    config = tmp_path / "config.json"
    config.write_text(text)
    (report,) = analyze([str(LOG)], Settings(model_config=config)).reports
    assert report.root_cause is not None
    assert report.root_cause.rule == "graph-capture-oom"


@pytest.mark.parametrize("text", ODD[:4], ids=range(4))
def test_what_is_no_object_is_no_configuration(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ShapeError, match=r"not JSON|no JSON object"):
        read_config(tmp_path / "config.json")
    assert config_beside(str(tmp_path)) == {}


def test_only_a_file_of_an_absolute_path_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")  # reading it would wait for a writer
    for path in (str(tmp_path), "models/llama", "/nul\0byte", None, 7):
        assert config_beside(path) == {}
