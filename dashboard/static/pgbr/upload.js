"use strict";

// Sends the chosen file as it is, as the body of one request, and says how far it has come.
(() => {
  const form = document.getElementById("upload");
  const part = (name) => form.querySelector(`[data-part="${name}"]`);
  const [choose, running, outcome] = ["choose", "running", "outcome"].map(part);
  const input = document.getElementById("file");
  const UNITS = ["kB", "MB", "GB", "TB"];
  const WINDOW = 10; // seconds over which the speed is taken
  let sending = null;

  const inBytes = (count) => {
    let power = 0;
    while (count >= 999.5 && power < UNITS.length) { count /= 1000; power += 1; }
    if (!power) return `${count} B`;
    return `${count.toFixed(count < 9.995 ? 2 : count < 99.95 ? 1 : 0)} ${UNITS[power - 1]}`;
  };
  const inTime = (seconds) => {
    if (seconds < 60) return `${Math.ceil(seconds)}s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${Math.floor(seconds % 60)}s`;
    return `${Math.floor(seconds / 3600)}h ${Math.floor(seconds / 60) % 60}m`;
  };

  const element = (tag, text, properties = {}) =>
    Object.assign(document.createElement(tag), { textContent: text }, properties);

  const tell = (kind, text, links = []) => {
    const box = element("div", "", { className: kind });
    const bar = element("div", "", { className: "submit-bar" });
    box.append(element("p", text));
    bar.append(...links.map(([label, href, look]) => element("a", label, { href, className: `button ${look}` })));
    if (links.length) box.append(bar);
    outcome.replaceChildren(box);
    outcome.focus();
  };
  const refuse = (text) => tell("notice notice-bad", text);

  const show = (busy) => {
    choose.hidden = busy;
    running.hidden = !busy;
    part("cancel").hidden = false;
    if (busy) outcome.replaceChildren();
  };

  const explain = (request) => {
    let reason;
    try { reason = JSON.parse(request.responseText).error; } catch { reason = ""; }
    if (reason) return reason;
    if (request.status === 403) return "The session has changed: load this page again.";
    if (request.status === 413) return "The server, or a proxy before it, takes no files of this size.";
    if (request.status) return `The server answered with ${request.status}. See its log.`;
    return "The connection broke, or the file cannot be read. Nothing of it was kept; send it again.";
  };

  const done = (answer) => {
    const page = (address) => address.replace(form.dataset.nobody, answer.id);
    const links = [["Details", page(form.dataset.detail), "quiet"]];
    if (form.dataset.restore) links.unshift(["Restore it …", page(form.dataset.restore), ""]);
    tell("notice", `${answer.name} is here: ${answer.contents}, ${inBytes(answer.size)}.`, links);
  };

  const follow = () => {
    const seen = [];
    return (event) => {
      const now = performance.now() / 1000;
      seen.push([now, event.loaded]);
      while (now - seen[0][0] > WINDOW) seen.shift();
      const speed = (event.loaded - seen[0][1]) / (now - seen[0][0]);
      const pace = Number.isFinite(speed) && speed > 0
        ? `, ${inBytes(speed)}/s, about ${inTime((event.total - event.loaded) / speed)} left` : "";
      part("bar").value = event.total ? event.loaded / event.total : 0;
      part("figures").textContent = `${inBytes(event.loaded)} of ${inBytes(event.total)}${pace}`;
    };
  };

  const send = (file) => {
    if (file.size > Number(form.dataset.most)) {
      return refuse(`${file.name} has ${inBytes(file.size)}; at most ${form.dataset.limit} may be uploaded.`);
    }
    if (!file.size) return refuse(`${file.name} is empty, or a folder: there is nothing to restore in it.`);
    const request = sending = new XMLHttpRequest();
    const over = (then) => () => { sending = null; show(false); input.value = ""; then(); };
    part("name").textContent = file.name;
    part("bar").value = 0;
    part("figures").textContent = "";
    show(true);
    part("cancel").focus();
    request.upload.onprogress = follow();
    request.upload.onload = () => {
      part("cancel").hidden = true; // too late: the server has it all
      part("bar").removeAttribute("value");
      part("figures").textContent = "All of it is sent. Looking at what it holds …";
    };
    request.onload = over(() => {
      if (request.status === 201) done(JSON.parse(request.responseText));
      else refuse(`${file.name}: ${explain(request)}`);
    });
    request.onerror = over(() => refuse(`${file.name}: ${explain(request)}`));
    request.onabort = over(() => tell("notice", `${file.name}: cancelled. Nothing of it was kept.`));
    request.open("POST", `${form.dataset.api}?${new URLSearchParams({ name: file.name })}`);
    request.setRequestHeader("X-CSRFToken", form.elements.csrfmiddlewaretoken.value);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    return request.send(file);
  };

  // A file dropped beside the area must not replace the page.
  for (const kind of ["dragover", "drop"]) document.addEventListener(kind, (event) => event.preventDefault());
  choose.addEventListener("dragover", () => choose.classList.add("over"));
  choose.addEventListener("dragleave", () => choose.classList.remove("over"));
  choose.addEventListener("drop", (event) => {
    choose.classList.remove("over");
    const files = event.dataTransfer.files;
    if (files.length > 1) refuse("One file at a time, please.");
    else if (files.length) send(files[0]);
  });
  input.addEventListener("change", () => { if (input.files.length) send(input.files[0]); });
  form.addEventListener("submit", (event) => event.preventDefault());
  part("cancel").addEventListener("click", () => { if (sending) sending.abort(); });
  window.addEventListener("beforeunload", (event) => { if (sending) event.preventDefault(); });
  form.hidden = false;
})();
