"""KV cache events, read with vLLM's published message classes."""

import json
import struct
from typing import Optional, Union

import msgspec
import pytest
import zmq
from conftest import eventually, http_client, serve
from test_adapters import write_adapter


class BlockStored(msgspec.Struct, tag="BlockStored", forbid_unknown_fields=True):
    block_hashes: list[int]
    parent_block_hash: Optional[int]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]
    lora_name: Optional[str]
    extra_keys: Optional[list[Optional[tuple[str, ...]]]] = None
    group_idx: Optional[int] = None
    kv_cache_spec_kind: Optional[str] = None
    kv_cache_spec_sliding_window: Optional[int] = None


class BlockRemoved(msgspec.Struct, tag="BlockRemoved", forbid_unknown_fields=True):
    block_hashes: list[int]
    medium: Optional[str]
    group_idx: Optional[int] = None


class AllBlocksCleared(msgspec.Struct, tag="AllBlocksCleared", forbid_unknown_fields=True):
    pass


class KVEventBatch(msgspec.Struct, array_like=True):
    ts: float
    events: list[Union[BlockStored, BlockRemoved, AllBlocksCleared]]
    data_parallel_rank: Optional[int] = None


DECODER = msgspec.msgpack.Decoder(KVEventBatch)


class Subscriber:
    """Reads every batch from the replay socket, because a subscription could miss the first ones."""

    def __init__(self, endpoint, decoder=DECODER):
        self.endpoint, self.decoder = endpoint, decoder
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.setsockopt(zmq.RCVTIMEO, 60_000)
        self.socket.connect(endpoint)

    def batches(self):
        self.socket.send_multipart([b"", struct.pack(">q", 0)])
        found = []
        while True:
            _, _, number, batch = self.socket.recv_multipart()  # the second frame is the topic
            number = struct.unpack(">q", number)[0]
            if number == -1:
                return found
            assert number == len(found)
            found.append(self.decoder.decode(batch))

    def events(self, count):
        """Returns all events once there are `count`. Events lag behind a response by one step."""
        events = []

        def came():
            events[:] = [event for batch in self.batches() for event in batch.events]
            return len(events) >= count

        assert eventually(came)
        return events


@pytest.fixture
def server(tmp_path):
    config = {"enable_kv_cache_events": True, "endpoint": f"ipc://{tmp_path}/events",
              "replay_endpoint": f"ipc://{tmp_path}/replay"}
    with serve("--kv-events-config", json.dumps(config), "--block-size", "16", "--server-dev-mode") as url:
        yield url, Subscriber(config["replay_endpoint"])


def complete(url, prompt):
    body = {"prompt": prompt, "max_tokens": 1, "temperature": 0}
    return http_client.post(f"{url}/v1/completions", json=body).raise_for_status().json()


def test_a_prompt_is_stored_once_and_cleared(server):
    url, subscriber = server
    prompt = list(range(10, 60))  # three full blocks
    complete(url, prompt)
    stored = subscriber.events(3)
    assert [event.token_ids for event in stored] == [prompt[0:16], prompt[16:32], prompt[32:48]]
    assert stored[0].parent_block_hash is None
    assert [event.parent_block_hash for event in stored[1:]] == [event.block_hashes[0] for event in stored[:-1]]
    assert all(event.block_size == 16 and event.medium == "GPU" for event in stored)

    complete(url, prompt)
    complete(url, prompt[:32] + [7] * 16 + [8])  # shares two blocks with the first prompt
    events = subscriber.events(4)
    assert len(events) == 4
    assert events[3].token_ids == [7] * 16 and events[3].parent_block_hash == stored[1].block_hashes[0]

    http_client.post(f"{url}/reset_prefix_cache", json={}).raise_for_status()
    events = subscriber.events(5)
    assert isinstance(events[4], AllBlocksCleared)


def test_a_tiers_blocks_are_told_of_under_the_same_names(tmp_path):
    events = {"enable_kv_cache_events": True, "endpoint": f"ipc://{tmp_path}/events", "replay_endpoint": f"ipc://{tmp_path}/replay"}
    tier = {"kv_connector": "SharedStorageConnector", "kv_role": "kv_both",
            "kv_connector_extra_config": {"shared_storage_path": f"{tmp_path}/kv", "load_always": True, "bytes_to_use": 8 * 50_000}}
    flags = ["--kv-events-config", json.dumps(events), "--kv-transfer-config", json.dumps(tier), "--block-size", "16"]
    prompt = list(range(10, 60))  # three full blocks
    with serve(*flags) as url:
        complete(url, prompt)
        told = Subscriber(events["replay_endpoint"]).events(6)
        here, below = told[:3], told[3:6]
        assert [event.medium for event in told] == ["GPU"] * 3 + ["STORAGE"] * 3
        for one, other in zip(here, below):
            assert msgspec.structs.replace(one, medium="STORAGE") == other
    with serve(*flags) as url:  # finds the blocks in the cache, before other prompts evict them
        complete(url, prompt)
        told = Subscriber(events["replay_endpoint"]).events(6)
        assert sorted((event.medium, event.token_ids[0]) for event in told) == [(m, t) for m in ("GPU", "STORAGE") for t in prompt[0:48:16]]
        for first in range(100, 500, 50):
            complete(url, list(range(first, first + 50)))
        names = {event.block_hashes[0] for event in told}

        def went():
            events_now = Subscriber(events["replay_endpoint"]).events(7)
            return {h for e in events_now if isinstance(e, BlockRemoved) and e.medium == "STORAGE" for h in e.block_hashes} >= names

        assert eventually(went)


def test_a_salted_prompt_has_a_key_of_its_own(server):
    url, subscriber = server
    body = {"prompt": list(range(10, 40)), "max_tokens": 1, "cache_salt": "mine"}
    http_client.post(f"{url}/v1/completions", json=body).raise_for_status()
    (event,) = subscriber.events(1)
    assert event.extra_keys == [("mine",)] and event.lora_name is None


def test_vllms_own_classes_read_them(server):
    kv_events = pytest.importorskip("vllm.distributed.kv_events", reason="PyPI's vllm is not installed")
    url, subscriber = server
    complete(url, list(range(10, 60)))
    http_client.post(f"{url}/reset_prefix_cache", json={}).raise_for_status()
    told = subscriber.events(4)
    theirs = Subscriber(subscriber.endpoint, msgspec.msgpack.Decoder(kv_events.KVEventBatch)).events(4)
    assert [type(event).__name__ for event in theirs] == [type(event).__name__ for event in told]
    for their, our in zip(theirs, told):
        assert {name: getattr(their, name) for name in our.__struct_fields__} == msgspec.structs.asdict(our)


def test_an_adapters_blocks_bear_its_name(tmp_path):
    replay = f"ipc://{tmp_path}/replay"
    config = {"enable_kv_cache_events": True, "endpoint": f"ipc://{tmp_path}/events", "replay_endpoint": replay}
    adapter = write_adapter(tmp_path / "a0", 0)
    with serve("--kv-events-config", json.dumps(config), "--enable-lora", "--max-lora-rank", "8", "--lora-modules", f"a0={adapter}") as url:
        for fields in ({"model": "a0"}, {"model": "a0", "cache_salt": "mine"}, {}):
            body = {"prompt": list(range(10, 40)), "max_tokens": 1} | fields
            http_client.post(f"{url}/v1/completions", json=body).raise_for_status()
        told = [(event.lora_name, event.extra_keys) for event in Subscriber(replay).events(3)]
        assert told == [("a0", [("a0",)]), ("a0", [("a0", "mine")]), (None, [None])]
