"""The page over the real service: what it shows is what the service knows, and what is approved there is carried out."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr

from tests.assembled.service.beside import Service, World, simulated_executor
from tests.browser.chromium import Tab
from trimtab.http import HttpSettings, serve

TOKEN = "a-token-of-some-length"


def test_a_plan_is_approved_on_the_page_and_carried_out(tab: Tab, tmp_path: Path) -> None:
    world = World(tmp_path)
    service = Service(world, executor=simulated_executor(world), mode="approve")
    server = serve(service.balancer, HttpSettings(port=0, token=SecretStr(TOKEN)))
    try:
        tab.open(server.url)
        tab.until("document.querySelector('#live').textContent === 'live'")
        assert tab.text("#verdict .tone") == "Starting"
        assert service.run(40).plan is not None
        tab.until("document.querySelector('#approve') && document.querySelector('table.actions')")
        assert "waits for approval" in tab.text("h1")
        tab.click("#approve")
        tab.type("#ask input[name=token]", TOKEN)
        tab.type("#ask input[name=who]", "Ana")
        tab.click("#ask-yes")
        tab.until("!document.querySelector('#ask').open")
        for _ in range(60):
            state = service.run(10)
            if state.plan is None or state.plan.state == "done":
                break
        tab.until("document.querySelector('#verdict .tone').textContent === 'Level'")
        tab.until("document.querySelector('#decisions').innerText.includes('approved by Ana')")
    finally:
        tab.open("about:blank#over")
        server.stop()
        service.stop()
