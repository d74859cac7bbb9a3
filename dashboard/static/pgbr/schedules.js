"use strict";

// Puts the viewer's own time beside the schedule's, and asks what a form means while it is typed.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const clock = new Intl.DateTimeFormat("en-GB", {
    weekday: "short", year: "numeric", month: "2-digit", day: "2-digit",
    hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  });

  const inWords = (instant) => {
    const part = Object.fromEntries(clock.formatToParts(instant).map(({ type, value }) => [type, value]));
    return `${part.weekday} ${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}`;
  };

  const localise = (root) => {
    for (const heading of root.querySelectorAll("[data-viewer-zone]")) {
      const same = heading.dataset.viewerZone === zone;
      heading.textContent = `For you, ${zone}`;
      heading.hidden = same;
      for (const cell of heading.closest("table").querySelectorAll("[data-instant]")) {
        cell.textContent = inWords(new Date(cell.dataset.instant));
        cell.hidden = same;
      }
    }
  };

  localise(document);
  const form = document.getElementById("schedule");
  if (!form) return;
  const part = (name) => form.querySelector(`[data-part="${name}"]`);
  const PAUSE = 250; // milliseconds without a key before the server is asked
  const FAILED = "The server does not answer as it should. Log in again in another tab if need be, then go on.";

  const ask = async (box, address, options) => {
    let text;
    try {
      const answer = await fetch(address, { credentials: "same-origin", ...options });
      if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
      text = await answer.text();
    } catch (error) {
      if (error.name === "AbortError") return;
      const line = Object.assign(document.createElement("p"), { className: "problem", textContent: FAILED });
      box.replaceChildren(line);
      part("check").hidden = false;
      return;
    }
    box.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
    localise(box);
  };

  const timing = part("timing");
  const names = ["preset", "minute", "time", "weekdays", "day", "cron", "timezone"];
  let timer = 0;
  let asking = new AbortController();
  let expression = "";

  const remember = () => {
    const shown = part("reading").querySelector("[data-expression]");
    if (shown) expression = shown.textContent;
  };
  const read = async () => {
    asking.abort();
    asking = new AbortController();
    const sent = [...new FormData(form)].filter(([name]) => names.includes(name));
    await ask(part("reading"), `${form.dataset.reading}?${new URLSearchParams(sent)}`, { signal: asking.signal });
    remember();
  };

  timing.addEventListener("input", (event) => {
    if (!names.includes(event.target.name)) return;
    const { preset, cron } = form.elements;
    if (event.target.name === "preset" && preset.value === "custom" && !cron.value) cron.value = expression;
    clearTimeout(timer);
    timer = setTimeout(read, PAUSE);
  });
  part("check").hidden = true;

  part("preview-button").addEventListener("click", (event) => {
    event.preventDefault();
    ask(part("preview"), form.dataset.preview, { method: "POST", body: new FormData(form) });
  });

  remember();
  const known = [...form.querySelectorAll("#zones option")].some((option) => option.value === zone);
  if ("new" in form.dataset && known && form.elements.timezone.value !== zone) {
    form.elements.timezone.value = zone;
    read();
  }
})();
