"""The engine's metrics: vLLM's classes and names."""

import re
from dataclasses import dataclass


@dataclass
class Metric:
    name: str
    labels: dict[str, str]


@dataclass
class Counter(Metric):
    value: int


@dataclass
class Vector(Metric):
    """Counters by position, such as accepted draft tokens."""
    values: list[int]


@dataclass
class Gauge(Metric):
    value: float


@dataclass
class Histogram(Metric):
    count: int
    sum: float
    buckets: dict[str, int]  # number of observations up to each bound


_SAMPLE = re.compile(r"(?P<name>[\w:]+)\{(?P<labels>.*)\} (?P<value>\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = {"n": "\n"}


def _labels(text: str) -> dict[str, str]:
    return {name: re.sub(r"\\(.)", lambda found: _ESCAPED.get(found[1], found[1]), value)
            for name, value in _LABEL.findall(text)}


def read_metrics(exposition: str) -> list[Metric]:
    """Returns the metrics of a page in Prometheus' text format. Names of counters omit _total, as in Prometheus' Python
    client."""
    kinds: dict[str, str] = {}
    series: dict[tuple[str, str], Metric] = {}  # metrics of several samples, by name and common labels
    metrics: list[Metric] = []

    def one(kind: type, name: str, labels: dict[str, str], *empty: object) -> Metric:
        key = (name, str(sorted(labels.items())))
        if key not in series:
            series[key] = kind(name, labels, *empty)
            metrics.append(series[key])
        return series[key]

    for line in exposition.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            kinds[name] = kind
        sample = _SAMPLE.match(line)
        if sample is None:
            continue
        name, labels, value = sample["name"], _labels(sample["labels"]), float(sample["value"])
        family, _, part = name.rpartition("_")
        if kinds.get(name) == "gauge":
            metrics.append(Gauge(name, labels, value))
        elif kinds.get(name) == "counter" and "position" in labels:
            del labels["position"]
            one(Vector, family, labels, []).values.append(int(value))
        elif kinds.get(name) == "counter":
            metrics.append(Counter(family, labels, int(value)))
        elif kinds.get(family) == "histogram":
            bound = labels.pop("le", "")
            histogram = one(Histogram, family, labels, 0, 0.0, {})
            if part == "bucket":
                histogram.buckets[bound] = int(value)
            elif part == "count":
                histogram.count = int(value)
            else:
                histogram.sum = value
    return metrics
