"""Walk 3: a metric from `run.log` to the open dashboard, where the store is a bucket."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from urllib.parse import urlsplit

import servers
from cli_world import World, eventually
from hostler.records import layout
from hostler.store import open_store

SCRIPT = """
import time, hostler
with hostler.start({"lr": 0.1}) as run:
    for step in range(1, 4000):
        run.log(step=step, wall=time.time())
        time.sleep(0.1)
        if run.should_stop:
            break
"""
RARE = {"HOSTLER_BEAT": "1", "HOSTLER_LEASE": "20", "HOSTLER_FLUSH": "600", "HOSTLER_FLUSH_MAX": "600"}


def test_bucket_metrics_come_each_beat_only_for_an_open_dashboard(
    tmp_path: Path, moto_store_url: str, moto_url: str
) -> None:
    world = World(tmp_path)
    world.env |= {
        **RARE,
        **servers.CREDENTIALS,
        "AWS_ENDPOINT_URL": moto_url,
        "HOSTLER_STORE": moto_store_url,
    }
    world.write("train.py", SCRIPT)
    store = open_store(moto_store_url)
    try:
        assert world.run("run", "--detach", "train.py").code == 0
        eventually(lambda: bool(world.run("status", "--json").json[0]["step"]))
        run = world.run("status", "--json").json[0]["id"]
        time.sleep(3)
        assert _last(store, run) is None  # nobody looks
        ui = world.start("ui", "--no-browser", "--port", "0")
        assert ui.stdout is not None
        place = urlsplit(ui.stdout.readline().strip())
        headers = {"Host": place.netloc, "Authorization": f"Bearer {place.fragment.removeprefix('token=')}"}
        page = http.client.HTTPConnection("127.0.0.1", place.port, timeout=30)
        page.request("GET", "/api/events?since=0", headers=headers)
        stream = page.getresponse()
        eventually(lambda: _last(store, run) is not None)

        def late() -> float:
            """How old the newest point of the page is."""
            asked = http.client.HTTPConnection("127.0.0.1", place.port, timeout=30)
            path = f"/api/curves?id={run}&metric=wall"
            asked.request("GET", path, headers=headers)
            curve = json.loads(asked.getresponse().read())["curves"][run]
            return time.time() - float(curve["y"][-1])

        eventually(lambda: late() < 3)
        stream.close()
        page.close()
        ui.terminate()
        ui.wait(60)
        assert list(store.list(layout.interest())) == []
    finally:
        world.run("stop", "--now", "--workers", "train")
        world.close()


def _last(store: object, run: str) -> str | None:
    """The newest fragment that holds points."""
    keys = [entry.key for entry in store.list(layout.metrics(run)) if entry.size > 200]  # type: ignore[attr-defined]
    return keys[-1] if keys else None
