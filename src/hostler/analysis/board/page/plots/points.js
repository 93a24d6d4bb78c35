// Curves with all their points, from the server: columns of numbers behind a header, read as they lie there.

import { getBytes } from "../data.js";

const AT_ONCE = 16; // runs of one request: the first curves stand there while others are read

// Calls got(curves, trouble) with id → {x, y, total} as parts come; stops where still() is false.
export async function fetchCurves(sweep, rows, metric, along, got, still) {
  const parts = [];
  for (let n = 0; n < rows.length; n += AT_ONCE) parts.push(rows.slice(n, n + AT_ONCE));
  for (const part of parts) {
    const answer = unpack(await getBytes("points", { sweep, index: spans(part.map((row) => row.index)), metric, along }));
    if (!still()) return;
    got(answer.curves, answer.trouble);
  }
}

function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const curves = new Map();
  let at = 4 + size;
  const column = (count) => { const made = new Float64Array(buffer, at, count); at += count * 8; return made; };
  for (const [id, count, total] of head.curves) curves.set(id, { x: column(count), y: column(count), total });
  return { curves, trouble: head.trouble };
}

// [0, 1, 2, 7] to "0-2,7".
export function spans(indices) {
  const parts = [];
  for (const n of [...indices].sort((a, b) => a - b)) {
    const last = parts.at(-1);
    if (last && last[1] + 1 === n) last[1] = n; else parts.push([n, n]);
  }
  return parts.map(([a, b]) => (a === b ? a : `${a}-${b}`)).join(",");
}

// And back; nothing of a text that nobody could have made.
export function unspan(text) {
  const found = [];
  for (const part of text.split(",")) {
    const [, a, b = a] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(part) ?? [];
    for (let n = Number(a); n <= Number(b) && found.length < 20_000; n++) found.push(n);
  }
  return found;
}
