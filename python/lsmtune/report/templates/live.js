"use strict";
// Puts in what the server says has changed, and sends what the user asks of the tuner.
(function () {
  const place = document.body.dataset.live;
  const said = document.getElementById("said");
  const form = document.querySelector("form.controls");

  function replace(id, html) {
    const old = document.getElementById(id);
    if (!old) { location.reload(); return; }
    // What the reader opened stays open.
    const open = new Set([...old.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const fresh = holder.content.firstElementChild;
    fresh.querySelectorAll("details > summary").forEach((each) => {
      if (open.has(each.textContent)) each.parentElement.open = true;
    });
    old.replaceWith(fresh);
    window.prepare(fresh);
  }

  const events = new EventSource(place + "/events?version=" + document.body.dataset.version);
  events.addEventListener("section", (event) => {
    const { id, html } = JSON.parse(event.data);
    replace(id, html);
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
