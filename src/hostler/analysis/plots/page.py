"""A page that opens from disk and fetches nothing: plotly.js, the plots' data and a few lines inside it.

The plotly.js is the cartesian part of it, minified: `files/plotly` holds it with its licence.

Only these scripts run: the page's own policy names them by their hashes. Data goes in as JSON with nothing in
it that could end the element it stands in.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from hostler.analysis.plain import plain
from hostler.analysis.plots.chart import Chart

CONFIG = {
    "displaylogo": False,
    "responsive": True,
    "showSendToCloud": False,  # plotly's own button to upload a chart to its makers
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
}


def page(
    title: str, body: Sequence[str], figures: Sequence[dict[str, Any]], *, data: Any = None, script: str = ""
) -> str:
    """`body` is markup whose texts are escaped; `figures` go to #plot-0, #plot-1 …"""
    scripts = [_plotly(), _own("plots.js"), *([script] if script else [])]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    stored = {"figures": list(figures), "config": CONFIG, "data": data}
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{html.escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title>",
            f"<style>{_own('page.css')}</style>",
            "</head><body>",
            *body,
            f'<script type="application/json" id="stored">{_json(stored)}</script>',
            *(f"<script>{text}</script>" for text in scripts),
            "</body></html>",
        ]
    )


def card(n: int, chart: Chart, heading: str = "h3") -> str:
    """The place of the n-th figure, with its title above and its note below it."""
    title, note = html.escape(words(chart.title)), html.escape(words(chart.note))
    below = f'<figcaption class="muted">{note}</figcaption>' if note else ""
    return (
        f'<figure class="plot"><{heading}>{title}</{heading}>'
        f'<div id="plot-{n}" role="group" aria-label="{title}"></div>{below}</figure>'
    )


def words(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    text = json.dumps(plain(value), separators=(",", ":"), default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@lru_cache
def _own(name: str) -> str:
    return (files("hostler.analysis.plots") / "files" / name).read_text("utf-8")


@lru_cache
def _plotly() -> str:
    return _own("plotly/plotly-cartesian-4.1.1.min.js").replace("</script", "<\\/script")
