"use strict";
// Puts in what the server says has changed, and sends what the user asks of the tuner.
(function () {
  const place = document.body.dataset.live;
  const said = document.getElementById("said");
  const form = document.querySelector("form.controls");

  // A label without its numbers, which change while a study runs.
  const labelOf = (each) => (each.ariaLabel || each.textContent).replace(/\d[\d.,]*/g, "#");
  const STOPS = "a[href], button, input, select, summary, [tabindex]";

  // What the reader did to a section: opened, sorted, scrolled, reached by keyboard.
  function stateOf(section) {
    const every = (selector) => [...section.querySelectorAll(selector)];
    const stops = every(STOPS);
    return {
      open: every("details[open] > summary").map(labelOf),
      sorted: every("th[aria-sort]").map((header) =>
        [labelOf(header.closest(".scroll")), labelOf(header), header.ariaSort === "ascending"]),
      scrolled: every(".scroll, pre").filter((each) => each.scrollLeft || each.scrollTop).map((each) =>
        [labelOf(each), each.scrollLeft, each.scrollTop]),
      stop: stops.indexOf(document.activeElement),
    };
  }

  function setState(section, state) {
    const every = (selector) => [...section.querySelectorAll(selector)];
    every("details > summary").forEach((each) => { each.parentElement.open = state.open.includes(labelOf(each)); });
    for (const [label, column, ascending] of state.sorted) {
      const header = every(".sortable th").find((each) =>
        labelOf(each.closest(".scroll")) === label && labelOf(each) === column);
      if (header) window.page.sortBy(header, ascending);
    }
    for (const [label, left, top] of state.scrolled) {
      every(".scroll, pre").filter((each) => labelOf(each) === label).forEach((each) => each.scrollTo({ left, top }));
    }
    every(STOPS)[state.stop]?.focus({ preventScroll: true });
  }

  // The first thing on the screen, by its place in its section, and how far from the top it is.
  function firstSeen() {
    const seen = [...document.querySelectorAll("main section > *")].find((each) => each.getBoundingClientRect().bottom > 0);
    if (!seen || !scrollY) return () => {};
    const section = seen.parentElement.id, index = [...seen.parentElement.children].indexOf(seen);
    const top = seen.getBoundingClientRect().top;
    return () => {
      const now = document.getElementById(section)?.children[index];
      if (now) scrollBy({ top: now.getBoundingClientRect().top - top, behavior: "instant" });
    };
  }

  // A section that was not there: the page is made anew, as the reader left it.
  const KEPT = "kept " + place;
  function reload() {
    const kept = [...document.querySelectorAll("main section[id]")].map((each) => [each.id, stateOf(each)]);
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
    location.reload();
  }
  for (const [id, state] of JSON.parse(sessionStorage.getItem(KEPT) || "[]")) {
    const section = document.getElementById(id);
    if (section) setState(section, state);
  }
  sessionStorage.removeItem(KEPT);

  function replace(id, html) {
    const old = document.getElementById(id);
    if (!old) { reload(); return; }
    const state = stateOf(old), goBack = firstSeen();
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const fresh = holder.content.firstElementChild;
    old.replaceWith(fresh);
    window.page.prepare(fresh);
    setState(fresh, state);
    goBack();
  }

  const events = new EventSource(place + "/events?version=" + document.body.dataset.version);
  events.addEventListener("section", (event) => {
    const { id, html } = JSON.parse(event.data);
    replace(id, html);
  });
  events.addEventListener("sections", (event) => {
    const { ids } = JSON.parse(event.data);
    // Without what is gone, such as the price of a verdict that was taken back.
    if ([...document.querySelectorAll("main section[id]")].some((each) => !ids.includes(each.id))) reload();
  });
  events.addEventListener("trouble", (event) => { said.textContent = JSON.parse(event.data).text; });
  events.addEventListener("error", () => { said.textContent = "The server does not answer."; });
  events.addEventListener("open", () => { said.textContent = ""; });

  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelectorAll("button[data-do]").forEach((button) => button.addEventListener("click", async () => {
    const values = Object.fromEntries(new FormData(form));
    if (button.dataset.do === "diff") {
      location.href = place + "/diff?" + new URLSearchParams({ one: values.one, other: values.other });
      return;
    }
    const body = JSON.stringify({ do: button.dataset.do, ...values });
    const answer = await fetch(place + "/requests", { method: "POST", body });
    said.textContent = answer.ok ? "The tuner does it when the run on the machine has ended." : await answer.text();
  }));
})();
