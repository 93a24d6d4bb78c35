// The first questions of a page that opens at a sweep, asked while its modules are still on their way; data.js takes the answers.

(() => {
  const token = /^#token=([\w-]+)/.exec(location.hash)?.[1] ?? localStorage.getItem("token");
  const name = /^(?:#token=[\w-]+)?#\/sweep\/([\w.-]+)(?:\/|$)/.exec(location.hash)?.[1];
  if (!token || !name || globalThis.early) return; // the modules were quicker
  globalThis.early = new Map();
  for (const path of [`table?sweep=${name}`, `overview?sweep=${name}`]) {
    const answer = fetch(`/api/${path}`, { headers: { Authorization: `Bearer ${token}` }, credentials: "omit" });
    answer.catch(() => {}); // said to whoever takes it
    globalThis.early.set(path, answer);
  }
})();
