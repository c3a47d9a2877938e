"""Changes the number of engines while streams run."""

import subprocess

import httpx
import pytest
from conftest import eventually, serve
from test_data_parallel import answers, client_of, ended, engines


def scale(base, **body):
    return httpx.post(base + "/scale_elastic_ep", json=body, timeout=600)


def is_scaling(base):
    return httpx.post(base + "/is_scaling_elastic_ep", timeout=60).json()["is_scaling_elastic_ep"]


def test_engines_come_and_go_while_streams_run(monkeypatch):
    monkeypatch.setenv("VLLM_LOG_STATS_INTERVAL", "0.1")  # log lines are written while the number changes
    with serve("--device", "cpu", "--enable-elastic-ep", "--elastic-ep-max-dp-size", "3") as base:
        expected = answers(base)
        assert len(engines(base)) == 1
        replies = []

        def grow():
            replies.append(scale(base, new_data_parallel_size=2))

        assert answers(base, while_running=grow) == expected
        assert replies.pop().json() == {"message": "Scaled to 2 data parallel engines"}
        assert len(engines(base)) == 2 and not is_scaling(base)
        assert answers(base) == expected
        assert ended(base).get("1", 0) > 0, "the new engine has work, too"

        def shrink():
            for _ in client_of(base).completions.create(model="demo", prompt="On engine 1", max_tokens=2, stream=True,
                                                        extra_headers={"X-data-parallel-rank": "1"}):
                pass
            replies.append(scale(base, new_data_parallel_size=1, drain_timeout=600))

        assert answers(base, while_running=shrink) == expected
        assert replies.pop().status_code == 200
        assert eventually(lambda: len(engines(base)) == 1 and set(ended(base)) == {"0"})
        assert answers(base) == expected


def test_errors_name_field_and_limit():
    def error(**body):
        reply = scale(base, **body)
        return reply.status_code, reply.json()["error"]["message"]

    with serve("--device", "cpu", "--enable-elastic-ep", "--elastic-ep-max-dp-size", "3") as base:
        for body, text in [
            ({}, "new_data_parallel_size: must be given"),
            ({"new_data_parallel_size": 4}, "must be from 1 to 3 (--elastic-ep-max-dp-size), got 4"),
            ({"new_data_parallel_size": 0}, "must be from 1 to 3 (--elastic-ep-max-dp-size), got 0"),
            ({"new_data_parallel_size": 2, "drain_timeout": -1}, "drain_timeout"),
            ({"new_data_parallel_size": 2, "more": 1}, "more"),
            ({"new_data_parallel_size": "many"}, "new_data_parallel_size"),
        ]:
            status, message = error(**body)
            assert status == 400 and text in message, message
        assert len(engines(base)) == 1
    with serve("--device", "cpu") as base:
        status, message = error(new_data_parallel_size=2)
        assert status == 400 and "this server cannot change its number of engines" in message


@pytest.mark.parametrize("flags", [
    ("--data-parallel-size", "2", "--data-parallel-size-local", "1"),
    ("--data-parallel-size", "2", "--headless", "--data-parallel-start-rank", "1"),
    ("--data-parallel-size", "2", "--data-parallel-rank", "1"),
    ("--data-parallel-size", "2", "--data-parallel-hybrid-lb"),
])
def test_engines_of_other_hosts_are_refused_with_what_to_do(flags):
    command = ["build/release/octavo", "serve", "--device", "cpu", "--port", "0", "--enable-elastic-ep", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode != 0
    assert "enable_elastic_ep: needs a server that runs all its engines" in ended.stderr
    assert "start a server on each host, and use octavo route" in ended.stderr
