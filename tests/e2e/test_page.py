"""The page at `/` in headless Chromium, with a person's actions. Skipped if Chromium or playwright is missing."""

import base64
import json
import os
import re
import shutil
import threading
from pathlib import Path

import pytest
from conftest import eventually, fetch, metric, running, serve

sync_api = pytest.importorskip("playwright.sync_api")
sync_api.expect.set_options(timeout=60_000)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
AXE = os.environ.get("AXE")  # axe.min.js of npm's package axe-core
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no chromium")

DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """Opens a page that records all errors."""
    context = browser.new_context(viewport=DESKTOP)
    context.set_default_timeout(60_000)
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.wrong = wrong
    yield page
    context.close()
    assert wrong == []


def send(page, text):
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")


def show(page, server, view):
    page.goto(server + "/" + view)
    sync_api.expect(page.get_by_role("navigation").locator("[aria-current]")).to_have_attribute("href", view)
    if view == "#engine":
        sync_api.expect(page.get_by_role("status")).to_have_text("Live")


def answer(page, number=-1):
    """Returns the text of a complete answer."""
    view = page.locator(".answer").nth(number)
    sync_api.expect(view).to_have_attribute("aria-busy", "false")
    return view.locator(".text").first.inner_text()


def test_chat_streams_and_messages_can_be_edited(page, server):
    page.goto(server)
    page.get_by_label("Temperature").fill("0")
    page.get_by_label("Max tokens").fill("24")
    send(page, "Where does Mira live?")
    first = answer(page)
    assert first
    assert "tokens/s" in page.locator(".timing").inner_text()
    send(page, "And who else?")
    answer(page, 1)
    page.get_by_role("button", name="Edit").first.click()
    page.get_by_label("Edited message").fill("Tell me a story.")
    page.get_by_role("button", name="Send").first.click()
    sync_api.expect(page.locator(".answer")).to_have_count(1)
    assert answer(page) != first
    page.get_by_role("button", name="Clear").click()
    sync_api.expect(page.locator(".answer")).to_have_count(0)


def test_stop_ends_the_answer_at_the_server(page, tmp_path):
    timing = tmp_path / "timing.json"
    timing.write_text('{"fixed_us": 20000}')  # so that the answer does not end before the click
    with serve("--executor", f"simulated={timing}") as server:
        page.goto(server)
        page.get_by_label("Max tokens").fill("1800")
        page.get_by_label("Min tokens").fill("1800")
        page.get_by_role("button", name="Completion").click()
        page.get_by_role("button", name="Complete", exact=True).click()
        sync_api.expect(page.locator(".answer .text")).not_to_be_empty()
        page.get_by_role("button", name="Stop").click()
        assert answer(page)
        assert "stopped" in page.locator(".timing").inner_text()
        assert eventually(lambda: metric(server, "vllm:num_requests_running") == 0)
        page.goto("about:blank")  # leaves the server before it ends


def test_logprobs_and_schema(page, server):
    page.goto(server)
    page.get_by_label("Show log-probabilities").check()
    page.get_by_label("Max tokens").fill("40")
    page.get_by_label("JSON schema of the answer").fill(
        '{"type": "object", "properties": {"name": {"enum": ["Mira", "Tom"]}}, "required": ["name"], '
        '"additionalProperties": false}')
    send(page, "Who is it?")
    # the end token is shown as well
    assert json.loads(answer(page).split("<|")[0])["name"] in ("Mira", "Tom")
    page.locator(".tokens span").first.hover()
    assert "%" in page.locator(".candidates").inner_text()


def test_mistakes_are_told(page, server):
    page.goto(server)
    page.get_by_label("Temperature").fill("9")
    send(page, "Hi")
    sync_api.expect(page.get_by_role("alert")).to_contain_text("temperature")
    assert all("400" in text for text in page.wrong)  # Chromium itself reports the status
    page.wrong.clear()


def test_engine_view_under_load(page, server, client, model):
    page.goto(server + "/#engine")
    sync_api.expect(page.get_by_role("status")).to_have_text("Live")

    seen = threading.Event()

    def load():
        while not seen.is_set():
            client.completions.create(model=model, prompt=["Once upon a time"] * 8, max_tokens=100,
                                      extra_body={"ignore_eos": True})
    thread = threading.Thread(target=load)
    thread.start()
    try:
        figure = page.locator(".figure", has_text="Generated tokens/s").locator("dd")
        sync_api.expect(figure).not_to_have_text("0")
        sync_api.expect(page.locator("rect.decode").last).to_be_visible()
    finally:
        seen.set()
        thread.join()
    sync_api.expect(page.locator(".figure", has_text="TTFT p50").locator("dd")).not_to_have_text("–")


def test_prefix_tree_forks_where_prompts_do(page, server, client, model):
    beginning = "Mira lives in a house by the sea with her dog and her grandmother, and every morning she goes out. " * 2
    for end in ("The sun shines on the sand and on the water, and there is no wind at all today, which is good. ",
                "It rains, and the wind blows from the north, so that no boat may leave the harbour this morning. "):
        client.completions.create(model=model, prompt=beginning + end, max_tokens=1)
    page.goto(server + "/#engine")
    tree = page.get_by_role("img", name="Prefix tree")
    # the common prefix of both texts, and two different ends
    sync_api.expect(tree.locator("rect.cached").nth(2)).to_be_attached()
    label = tree.get_attribute("aria-label")
    assert re.search(r"[1-9]\d* blocks in [1-9]\d* pieces", label), label


def test_a_router_shows_its_fleet(page, server):
    route = f"build/release/octavo route --port {{port}} --worker-urls {server} http://127.0.0.1:9"
    with running(route) as (_, base):
        assert eventually(lambda: json.loads(fetch(base + "/v1/models"))["data"])
        page.goto(base)
        page.get_by_label("Max tokens").fill("8")
        send(page, "Where does Mira live?")
        assert answer(page)
        page.get_by_role("link", name="Fleet").click()
        sync_api.expect(page.get_by_role("status")).to_have_text("1 of 2 workers take requests")
        rows = page.locator("tbody tr")
        sync_api.expect(rows).to_have_count(2)
        sync_api.expect(rows.filter(has_text=server.removeprefix("http://"))).to_contain_text("ready")
        sync_api.expect(rows.filter(has_text="127.0.0.1:9").last).to_contain_text("left out")
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        if AXE:
            assert_accessible(page)


def test_phone_does_not_scroll_sideways(page, server):
    page.set_viewport_size(PHONE)
    for view in ("#playground", "#engine"):
        show(page, server, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_an_image_goes_with_a_message(page, server):
    """Checks the request that a vision model would receive. The model here refuses it."""
    page.goto(server)
    sent = []
    page.on("request", lambda request: sent.append(request.post_data_json) if request.method == "POST" else None)
    pixel = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==")
    for _ in range(2):
        page.get_by_label("Add image").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": pixel})
    page.get_by_role("button", name="Remove image 2").click()
    send(page, "What is this?")
    sync_api.expect(page.get_by_role("alert")).to_contain_text("image")
    image, text = sent[0]["messages"][0]["content"]
    assert image["image_url"]["url"] == "data:image/png;base64," + base64.b64encode(pixel).decode()
    assert text == {"type": "text", "text": "What is this?"}
    sync_api.expect(page.get_by_alt_text("Image 1")).to_be_visible()
    assert all("400" in text for text in page.wrong)
    page.wrong.clear()


def assert_accessible(page):
    page.evaluate(Path(AXE).read_text())  # bypasses the content security policy, which forbids other scripts
    found = page.evaluate("axe.run()")["violations"]
    assert [(v["id"], [node["html"] for node in v["nodes"]]) for v in found] == []


@pytest.mark.skipif(not AXE, reason="no axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing(page, server, scheme, size):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(size)
    page.goto(server)
    page.locator("summary").first.wait_for()
    page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    page.get_by_label("Max tokens").fill("8")
    page.get_by_label("Show log-probabilities").check()
    send(page, "Hi")
    answer(page)
    for view in ("#playground", "#engine"):
        show(page, server, view)
        assert_accessible(page)


def test_key_is_asked_for(page):
    with serve("--api-key", "secret") as base:
        page.goto(base)
        page.get_by_label("API key").fill("wrong")
        page.get_by_role("button", name="Open").click()
        sync_api.expect(page.get_by_role("alert")).to_contain_text("does not take this key")
        page.get_by_label("API key").fill("secret")
        page.get_by_role("button", name="Open").click()
        page.get_by_label("Max tokens").fill("5")
        send(page, "Hi")
        answer(page)
        page.reload()
        page.get_by_label("Message", exact=True).wait_for()
        assert all("401" in text for text in page.wrong)
        page.wrong.clear()
