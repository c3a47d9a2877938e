"""Writes the wheel octavo_grammar: the package octavo.grammar and its library, without the engine.

    cmake --build --preset release --target liboctavo_grammar
    python tools/grammar_wheel.py build/release/liboctavo_grammar.so.1 build/dist
    auditwheel repair -w build/dist build/dist/octavo_grammar-*.whl     # adds libfmt and libspdlog

It has no octavo/__init__.py, so `octavo` is a namespace package, and the wheel octavo can be installed as well.
"""

import base64
import hashlib
import pathlib
import re
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).parent.parent


def main(library, folder):
    version = re.search(r"project\(octavo VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    info = f"octavo_grammar-{version}.dist-info"
    package = ROOT / "bindings/python/octavo/grammar"
    files = {f"octavo/grammar/{path.name}": path.read_bytes() for path in sorted(package.iterdir()) if path.suffix == ".py" or path.name == "py.typed"}
    files["octavo/lib/liboctavo_grammar.so.1"] = pathlib.Path(library).read_bytes()
    files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/METADATA"] = (f"Metadata-Version: 2.4\nName: octavo-grammar\nVersion: {version}\nSummary: Token masks for JSON Schema, "
                                 "regex and grammars\nRequires-Python: >=3.9\nLicense-File: LICENSE\n").encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: octavo\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n".encode()
    files[f"{info}/entry_points.txt"] = b"[vllm.general_plugins]\noctavo_grammar = octavo.grammar.vllm:plugin\n"

    def digest(data):
        return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()

    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = record.encode()
    wheel = pathlib.Path(folder) / f"octavo_grammar-{version}-py3-none-{platform}.whl"
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
