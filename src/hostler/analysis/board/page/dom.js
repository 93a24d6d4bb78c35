// Elements from data. Text is always text: nothing here makes markup of a string.

export function h(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return made;
}

export function show(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
}

export function toast(text) {
  const line = h("p", {}, text);
  document.getElementById("toasts").append(line);
  setTimeout(() => line.remove(), 6000);
}

// Asks before something happens; `text` may hold a box to type into. Resolves to true or false.
export function ask(title, text, yes) {
  return new Promise((resolve) => {
    const close = (answer) => { box.close(); box.remove(); resolve(answer); };
    const box = h("dialog", { "aria-labelledby": "ask-title", oncancel: () => close(false) },
      h("h1", { id: "ask-title" }, title), h("p", { class: "muted" }, text),
      h("div", { class: "bar" },
        h("button", { type: "button", onclick: () => close(false) }, "Not now"),
        h("button", { type: "button", class: "strong", onclick: () => close(true) }, yes)));
    document.body.append(box);
    box.showModal();
    const first = box.querySelector("input");
    first?.focus();
    first?.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); close(true); } });
  });
}
