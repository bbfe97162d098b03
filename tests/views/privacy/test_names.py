"""Pseudonyms: what gets one, what stays, and that they are the same everywhere."""

from __future__ import annotations

import pytest

from forensics.views.privacy import Names, hidden


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("connect to [gpu-7.corp.acme.com]:29500", "connect to [host-1]:29500"),
        ("http://billing:8080/x", "http://host-1:8080/x"),
        ("on ip-10-1-2-3.ec2.internal.", "on host-1."),
        ("alice@gpu07:~$ ls", "user-1@host-1:~$ ls"),
        ("hostname: trainer9", "hostname: host-1"),
        ("Feb 26 15:56:59 gpu17 sglang[12]: hi", "Feb 26 15:56:59 host-1 sglang[12]: hi"),
        ("10.0.0.1 and 10.0.0.2 and 10.0.0.1", "ipv4-1 and ipv4-2 and ipv4-1"),
        ("169.254.1.1 fe80::1:2", "link-local-2 link-local-1"),
        ("2001:db8::1, [2001:db8::1]:80", "ipv6-1, [ipv6-1]:80"),
        ("mac 0c:42:a1:3b:9e:01", "mac mac-1"),
        ("/home/bob/a/b/site-packages/x.py", "/home/user-1/.../site-packages/x.py"),
        ("/home/bob/secret/thing/run.py and bob", "/home/user-1/.../run.py and user-1"),
        ("C:\\Users\\bob\\x", "C:\\Users\\user-1\\x"),
        ("user=carol, uid=1000(carol)", "user=user-1, uid=1000(user-1)"),
        ("mail to a.b@c.de now", "mail to email-1 now"),
        ("GPU-1f0c9e7a-1111-2222-3333-abcdefabcdef", "gpu-uuid-1"),
        ("Receive: obj=GenerateReqInput(text='hi')", "Receive: obj=[request]"),
        ("{'text': 'it\\'s mine', 'n': 1}", "{'text': '[request]', 'n': 1}"),
        ("input_ids=[1, 2, 3], x", "input_ids=[request], x"),
    ],
)
def test_names_are_replaced_once_and_for_all(text: str, expected: str) -> None:
    assert hidden([text]) == [expected]
    assert hidden([expected]) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1 0.0.0.0 [::] ::1 localhost",
        "a link-local address (fe80::) does not route",
        "sglang 0.5.9 nvidia-cublas-cu12==12.8.4.1 torch 2.9.1",
        "23:53:22 2026-02-18 TP0:12 cuda_graph_runner.py:370 log-7.txt:14222",
        "torch.OutOfMemoryError c10::Error std::add self.model_runner.sample",
        "https://huggingface.co/org/model https://docs.nvidia.com/x",
        "model-00001-of-00083.safetensors server process host memory",
        "GPU 4 has a total capacity of 94.97 GiB of which 247.44 MiB is free",
        "PCI:0000:a9:00 DP0 TP0 rank 3 of 8",
        "context=4096 token usage: 0.93, #queue-req: 3",
        "/opt/sglang/srt/x.py /root/.cache/huggingface/hub",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert hidden([text]) == [text]


def test_a_name_learnt_in_one_place_is_hidden_in_all() -> None:
    assert hidden({"a": "lost worker9, again", "b": ["host=worker9"]}) == {
        "a": "lost host-1, again",
        "b": ["host=host-1"],
    }


def test_what_a_fact_calls_a_host_needs_no_digit() -> None:
    names = Names()
    names.add_host("leader")
    assert names.hide("the leader leads leaderless") == "the host-1 leads leaderless"
