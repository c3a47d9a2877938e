"""https and Unix sockets, through the official OpenAI client."""

import contextlib
import shlex
import ssl
import subprocess
import urllib.request

import httpx
import openai
import pytest
from conftest import PATIENCE, eventually, free_port


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    return certificate, key


@contextlib.contextmanager
def started(command, reached):
    """Runs a process, and yields once `reached` returns without an exception."""
    process = subprocess.Popen(shlex.split(command))
    try:
        def is_ready():
            assert process.poll() is None, "it ended before it was ready"
            with contextlib.suppress(OSError):
                reached()
                return True

        assert eventually(is_ready, PATIENCE), "it is not ready"
        yield
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


def story(base, **client):
    with openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0, http_client=httpx.Client(**client)) as openai_client:
        fields = dict(model="demo", prompt="Once upon a time", max_tokens=40, temperature=0)
        whole = openai_client.completions.create(**fields).choices[0].text
        assert "".join(chunk.choices[0].text for chunk in openai_client.completions.create(**fields, stream=True)) == whole
        return whole


def test_https_before_server_and_router_and_between_them(certificate, server):
    context = ssl.create_default_context(cafile=certificate[0])
    expected = story(server)

    @contextlib.contextmanager
    def secure(command):
        base = f"https://127.0.0.1:{free_port()}"
        run = f"build/release/octavo {command} --host 127.0.0.1 --port {base.rsplit(':', 1)[1]}"
        with started(run, lambda: urllib.request.urlopen(base + "/health", context=context, timeout=PATIENCE)):
            assert story(base, verify=context) == expected
            with pytest.raises(openai.APIConnectionError):
                story(base)  # the client does not trust the certificate's authority
            with pytest.raises(openai.BadRequestError, match="use https://"):
                story(base.replace("https", "http"))
            yield base

    with secure(f"serve --ssl-certfile {certificate[0]} --ssl-keyfile {certificate[1]} "
                f"--ssl-ca-certs {certificate[0]} --ssl-cert-reqs 1") as worker:
        with secure(f"route --tls-cert-path {certificate[0]} --tls-key-path {certificate[1]} --worker-urls {worker} "
                    f"--ca-cert-paths {certificate[0]} --client-cert-path {certificate[0]} --client-key-path {certificate[1]}"):
            pass


def test_metrics_of_the_picker_over_tls(certificate, server, tmp_path):
    (tmp_path / "tls.crt").write_bytes(certificate[0].read_bytes())
    (tmp_path / "tls.key").write_bytes(certificate[1].read_bytes())
    trusting = ssl.create_default_context(cafile=certificate[0])
    known = ssl.create_default_context(cafile=certificate[0])
    known.load_cert_chain(*certificate)

    def page(base, context):
        return urllib.request.urlopen(base + "/metrics", context=context, timeout=PATIENCE).read().decode()

    pick = f"build/release/octavo pick --host 127.0.0.1 --grpc-port 0 --grpc-health-port 0 --endpoints {server.removeprefix('http://')}"
    for flags, context in (("", trusting), (f"--metrics-client-ca-file {certificate[0]}", known)):
        base = f"https://127.0.0.1:{free_port()}"
        command = f"{pick} --metrics-port {base.rsplit(':', 1)[1]} --metrics-cert-dir {tmp_path} {flags}"
        with started(command, lambda base=base, context=context: page(base, context)):
            assert "llm_d_epp_ready_endpoints" in page(base, context)
            with pytest.raises(OSError):
                page(base.replace("https", "http"), None)
            if flags:
                with pytest.raises(OSError):
                    page(base, trusting)  # the client has no certificate


def test_a_unix_socket(tmp_path, server):
    path = tmp_path / "socket"

    def reached():
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            try:
                client.get("http://octavo/health").raise_for_status()
            except httpx.HTTPError as error:
                raise OSError(error) from error

    with started(f"build/release/octavo serve --uds {path}", reached):
        assert story("http://octavo", transport=httpx.HTTPTransport(uds=str(path))) == story(server)
    assert not path.exists()


def test_wrong_files_are_told():
    done = subprocess.run(["build/release/octavo", "serve", "--port", "0", "--ssl-certfile", "/nowhere.pem"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "ssl-certfile" in done.stderr and "/nowhere.pem" in done.stderr
