// The token that opens this dashboard: from the address into this origin's own memory, and into every request.

const NAME = "token";
take();

// Reads the token out of an address like #token=TEXT or #token=TEXT#/sweep/x, and takes it out of there.
export function take() {
  const found = /^#token=([\w-]+)(?:#(.*))?$/.exec(location.hash);
  if (!found) return false;
  keep(found[1]);
  history.replaceState(null, "", `${location.pathname}#${found[2] ?? "/"}`);
  return true;
}

export function keep(text) {
  localStorage.setItem(NAME, text);
}

export function headers(more = {}) {
  return { Authorization: `Bearer ${localStorage.getItem(NAME) ?? ""}`, ...more };
}

export function has() {
  return localStorage.getItem(NAME) !== null;
}

// Another page of this origin was given a token: this one has it, too.
export function onNew(act) {
  addEventListener("storage", (event) => { if (event.key === NAME && event.newValue) act(); });
}
