"""Writes deploy/kubernetes: the manifests that deploy/chart makes, for users without Helm. A test compares them.

    .venv/bin/python tools/manifests/plain.py
"""

import pathlib

import helm_python

ROOT = pathlib.Path(__file__).parents[2]
CHART = ROOT / "deploy" / "chart"

# File, release, template and values.
PLAIN = [
    ("serve.yaml", "octavo", "serve", {}),
    ("route.yaml", "octavo", "route", {}),
    ("pick.yaml", "octavo", "pick", {"pick": {"enabled": True}}),
    ("decode-with-sidecar.yaml", "octavo-pd", "prefill-decode", {"engine": {"layout": "prefill-decode"}, "pick": {"enabled": True}}),
]


def plain_manifests():
    """Returns the texts by file name."""
    with helm_python.Chart.load(CHART) as chart:
        return {
            file: chart.render(values, name=release, namespace="default")[f"octavo/templates/{template}.yaml"].lstrip()
            for file, release, template, values in PLAIN
        }


if __name__ == "__main__":
    for file, text in plain_manifests().items():
        (ROOT / "deploy" / "kubernetes" / file).write_text(text)
