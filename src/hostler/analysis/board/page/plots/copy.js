// A plot as a picture of its own, into the clipboard; where a browser refuses that, into a file.

import { h, toast } from "../dom.js";
import { cut, svg, tones } from "./svg.js";

const WIDTH = 960, HEIGHT = 480, ROW = 20;

// A whole document: title, plot, legend. shapes(width, height, tone) draws the plot.
export function drawing({ title, shapes, legend = [], height = HEIGHT }) {
  const tone = tones(), each = 230, columns = Math.floor((WIDTH - 40) / each), shown = legend.slice(0, 40);
  const rows = Math.ceil(shown.length / columns), whole = height + 50 + rows * ROW + (rows ? 16 : 0);
  const key = (one, n) => {
    const [x, y] = [40 + (n % columns) * each, height + 62 + Math.floor(n / columns) * ROW];
    return [svg("line", { x1: x, x2: x + 18, y1: y - 4, y2: y - 4, stroke: one.colour, "stroke-width": 3 }), svg("text", { x: x + 26, y, "font-size": 12, fill: tone.ink }, cut(one.name, each - 40))];
  };
  return svg("svg", { xmlns: "http://www.w3.org/2000/svg", width: WIDTH, height: whole, viewBox: `0 0 ${WIDTH} ${whole}`, "font-family": "system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif" },
    svg("rect", { width: WIDTH, height: whole, fill: tone.card }),
    svg("text", { x: 16, y: 28, "font-size": 17, "font-weight": 600, fill: tone.ink }, cut(title, WIDTH - 32, 9)),
    svg("g", { transform: "translate(0 40)" }, shapes(WIDTH, height, tone)), shown.map(key));
}

export async function copySvg(name, made) {
  const text = new XMLSerializer().serializeToString(made);
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied as SVG.");
  } catch { save(`${name}.svg`, new Blob([text], { type: "image/svg+xml" })); }
}

export async function copyPng(name, made) {
  const picture = raster(made);
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
    toast("Copied as PNG.");
  } catch { save(`${name}.png`, await picture); }
}

async function raster(made) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(made))}`;
  await image.decode();
  const canvas = h("canvas", { width: made.getAttribute("width") * 2, height: made.getAttribute("height") * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function save(name, blob) {
  const url = URL.createObjectURL(blob);
  h("a", { href: url, download: name.replace(/[^\w.-]+/g, "-") }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  toast("This browser gives pages no clipboard here: the picture was saved as a file.");
}

// The two buttons of a plot; make() gives its drawing.
export function copyButtons(name, make) {
  const button = (kind, act) => h("button", { type: "button", class: "quiet small", "aria-label": `Copy ${name} as ${kind}`, title: `Copy as ${kind}`, onclick: () => act(name, make()) }, kind);
  return h("span", { class: "copies" }, button("PNG", copyPng), button("SVG", copySvg));
}
