"""What a person does on the live page: tokens, questions, buttons, and what an execution is told."""

from __future__ import annotations

import pytest

from tests.browser.chromium import Tab
from tests.browser.page import LOADED, TOKEN, Opening
from tests.service_face import executing, small


def answer_dialog(tab: Tab, token: str | None, who: str = "", why: str = "") -> None:
    tab.until("document.querySelector('#ask').open")
    if token is not None:
        tab.type("#ask input[name=token]", token)
    if who:
        tab.type("#ask input[name=who]", who)
    if why:
        tab.type("#ask input[name=why]", why)
    tab.click("#ask-yes")


def test_approving_takes_the_token_once_and_a_name(tab: Tab, opening: Opening) -> None:
    face = small()
    opening(face)
    tab.until(LOADED)
    tab.click("#approve")
    answer_dialog(tab, TOKEN, "Ana")
    tab.until("!document.querySelector('#ask').open && document.querySelector('#plan-head').innerText.includes('approved')")
    assert face.made is not None
    assert face.done == [("approve", face.made.plan_id, "Ana")]
    assert not tab.run("Boolean(document.querySelector('#approve'))"), "what is approved cannot be approved again"
    tab.click("#pause")
    tab.until("document.querySelector('#ask').open")
    assert tab.run("document.querySelector('#ask-token').hidden"), "the token is asked for again"
    answer_dialog(tab, None, why="upgrade")
    tab.until("document.querySelector('#resume') && document.querySelector('#mode').textContent === 'approve, paused'")
    assert face.done[-1] == ("pause", "Ana", "upgrade")
    assert "Ana paused the service." in tab.text("#verdict")
    assert TOKEN not in tab.run("document.documentElement.outerHTML + location.href + JSON.stringify(localStorage)")
    tab.click("#forget")
    assert tab.run("sessionStorage.length") == 0


def test_a_wrong_token_is_asked_for_again_and_nothing_happens(tab: Tab, opening: Opening) -> None:
    face = small()
    opening(face)
    tab.until(LOADED)
    tab.click("#reject")
    answer_dialog(tab, "a-token-that-is-wrong", "Ana", "too big")
    tab.until("!document.querySelector('#ask-fault').hidden")
    assert "another one was sent" in tab.text("#ask-fault")
    assert face.done == []
    tab.run("document.querySelector('#ask input[name=token]').value = ''")
    answer_dialog(tab, TOKEN)
    tab.until("!document.querySelector('#ask').open && document.querySelector('#plan-head').innerText.includes('rejected')")
    assert face.made is not None
    assert face.done == [("reject", face.made.plan_id, "Ana", "too big")]
    assert any("401" in trouble for trouble in tab.troubles)
    tab.troubles = [t for t in tab.troubles if "401" not in t]  # the browser itself notes it


def test_escape_takes_nothing_for_a_yes(tab: Tab, opening: Opening) -> None:
    face = small()
    opening(face)
    tab.until(LOADED)
    tab.click("#approve")
    tab.until("document.querySelector('#ask').open")
    tab.key("Escape", 27)
    tab.until("!document.querySelector('#ask').open")
    assert face.done == []
    assert tab.run("document.activeElement.id") == "approve"


def test_without_a_configured_token_the_buttons_are_off_and_say_why(tab: Tab, opening: Opening) -> None:
    opening(small(), token=None)
    tab.until(LOADED)
    assert tab.run("['#pause', '#plan-now', '#approve', '#reject'].every((s) => document.querySelector(s).disabled)")
    assert "token_file" in tab.text("#verdict")


@pytest.mark.parametrize("mode", ["approve", "auto"])
def test_without_an_executor_nothing_can_be_approved_and_the_page_says_why(tab: Tab, opening: Opening, mode: str) -> None:
    face = small()
    face.now = face.now.model_copy(update={"mode": mode, "has_executor": False})
    opening(face)
    tab.until(LOADED)
    assert tab.text("#mode") == f"{mode}, no executor"
    assert "cannot be carried out" in tab.text("h1")
    assert tab.run("document.querySelector('#approve').disabled")
    assert not tab.run("document.querySelector('#reject').disabled")
    assert "nothing can be approved and nothing is moved: this release has no executor" in tab.text("#plan-head")


def test_where_reading_takes_the_token_it_is_asked_for_first(tab: Tab, opening: Opening) -> None:
    opening(small(), read="token")
    answer_dialog(tab, TOKEN)
    tab.until(LOADED)
    assert tab.text("h1").startswith("All 12 brokers")
    assert tab.troubles == []


def test_draining_a_broker_from_its_row(tab: Tab, opening: Opening) -> None:
    face = small()
    opening(face)
    tab.until(LOADED)
    tab.click('#broker-table button[aria-label="Drain broker 7"]')
    answer_dialog(tab, TOKEN, "Ana")
    tab.until("document.querySelector('#broker-table button[aria-label=\"Stop draining broker 7\"]')")
    assert face.done == [("drain", 7, True, "Ana")]


def test_a_drained_broker_is_called_so_and_is_activated_from_its_row(tab: Tab, opening: Opening) -> None:
    face = small()
    drained = [b.model_copy(update={"drained": b.id == 7}) for b in face.now.brokers]
    face.now = face.now.model_copy(update={"brokers": tuple(drained)})
    opening(face)
    tab.until(LOADED)
    button = '#broker-table button[aria-label="Stop draining broker 7"]'
    assert tab.text(button) == "Activate"
    assert "drained" in tab.run(f"document.querySelector('{button}').closest('tr').innerText")
    assert "Broker 7 is drained" in tab.text("body")
    tab.click(button)
    answer_dialog(tab, TOKEN, "Ana")
    tab.until("document.querySelector('#broker-table button[aria-label=\"Drain broker 7\"]')")
    assert face.done == [("drain", 7, False, "Ana")]


def test_an_execution_shows_every_copy_and_is_cancelled_only_after_a_question(tab: Tab, opening: Opening) -> None:
    """A click on the wrong button would take back an hour of copying."""
    face = small()
    assert face.made is not None
    face.now = face.now.model_copy(update={"execution": executing(face.made)})
    opening(face)
    tab.until(LOADED)
    tab.until("document.querySelectorAll('table.moving tbody tr').length === 6")
    shown = tab.text("#execution")
    assert "14 of 200 partitions done, by this instance" in shown
    assert "1.20 GB of 9.60 GB copied, 31.0 MB/s, about 5 min left" in shown
    assert "5.00 MB/s" in tab.text("table.moving tbody tr")
    assert "2 min" in tab.text("table.moving tbody tr")
    tab.click("#execution-cancel")
    tab.until("document.querySelector('#ask').open")
    tab.key("Escape", 27)
    tab.until("!document.querySelector('#ask').open")
    assert face.done == []
    tab.click("#execution-finish")
    answer_dialog(tab, TOKEN, "Ana", "peak hours")
    tab.until("document.querySelector('#execution').innerText.includes('cancelled by Ana')")
    assert face.done == [("cancel", face.made.plan_id, "Ana", "peak hours", True)]
    assert not tab.run("Boolean(document.querySelector('#execution-cancel'))"), "what is being cancelled cannot be cancelled again"
    tab.click("#execution-rollback")
    answer_dialog(tab, None)
    tab.until("document.querySelector('#execution').innerText.includes('rolled back by Ana')")
    assert face.done[-1] == ("rollback", face.made.plan_id, "Ana")


def test_a_question_stays_when_the_one_before_it_closes_late(tab: Tab, opening: Opening) -> None:
    """A dialog tells of its closing in a later task: by then the next question may be open."""
    opening(small())
    tab.until(LOADED)
    tab.click("#pause")
    tab.until("document.querySelector('#ask').open")
    tab.run("""new Promise((told) => {
      const ask = document.querySelector('#ask');
      ask.addEventListener('close', () => setTimeout(told), { once: true });
      ask.close();
      document.querySelector('#plan-now').click(); })""")
    assert tab.run("document.querySelector('#ask').open")
    assert tab.text("#ask-title") == "Decide now?"


def test_a_button_drawn_again_while_it_is_pressed_gets_its_click(tab: Tab, opening: Opening) -> None:
    face = small()
    opening(face)
    tab.until(LOADED)
    tab.until("document.querySelector('#live').className.endsWith('on')")
    tab.run("document.querySelector('#plan-now').scrollIntoView({block: 'center'})")
    box = tab.run("document.querySelector('#plan-now').getBoundingClientRect().toJSON()")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    asked = "performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/api/v1/state') && e.responseEnd > 0).length"
    before = tab.run(asked)
    tab.send("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, button="left", clickCount=1)
    face.change(paused=True)
    tab.until(f"{asked} > {before}")
    tab.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert not tab.run("document.querySelector('#mode').textContent.includes('paused')")
    face.change(paused=False)
    tab.send("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, button="left", clickCount=1)
    tab.until("document.querySelector('#ask').open")


def test_an_execution_is_paused_and_resumed_beside_what_it_does(tab: Tab, opening: Opening) -> None:
    face = small()
    assert face.made is not None
    face.now = face.now.model_copy(update={"execution": executing(face.made, here=False, instance="ops-host process 7")})
    opening(face)
    tab.until(LOADED)
    assert "by ops-host process 7" in tab.text("#execution")
    tab.click("#execution-pause")
    answer_dialog(tab, TOKEN, "Ana", "upgrade")
    tab.until("document.querySelector('#mode').textContent.includes('paused')")
    assert face.done == [("pause", "Ana", "upgrade")]
    face.change(execution=executing(face.made, paused="Ana", can=("resume", "cancel", "rollback")))
    tab.until("document.querySelector('#execution-resume')")
    tab.click("#execution-resume")
    answer_dialog(tab, None)
    tab.until("!document.querySelector('#mode').textContent.includes('paused')")
    assert face.done[-1] == ("resume", "Ana")


def test_where_this_instance_may_say_nothing_to_an_execution_there_are_no_buttons(tab: Tab, opening: Opening) -> None:
    face = small()
    assert face.made is not None
    why = "Node 2 is the active controller"
    face.now = face.now.model_copy(update={"execution": executing(face.made, can=(), why_not=why)})
    opening(face)
    tab.until(LOADED)
    assert tab.run("document.querySelectorAll('#execution button').length") == 0
    assert why in tab.text("#execution")
    face.change(execution=None)
    tab.until("document.querySelector('#execution').hidden && document.querySelector('#execution-link').hidden")
