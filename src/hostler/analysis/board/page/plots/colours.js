// Colours of runs, groups and values.
//
// The twenty of each theme were chosen by a search: any two differ by at least 0.06 in OKLab, for people who see all colours and for those with protanopia,
// deuteranopia or tritanopia, and each has a contrast of 3 to the card it lies on. A test computes both again.

export const LIGHT = [
  "#3c3cb4", "#c34b00", "#1e9696", "#e15a96", "#69a500", "#1e96ff", "#5a002d", "#785ac3", "#c38769", "#0f873c",
  "#870f3c", "#5a4b87", "#b46969", "#2d0087", "#004b00", "#9678d2", "#963c4b", "#875a78", "#5a2d69", "#4b005a",
];
export const DARK = [
  "#69b4c3", "#ffa53c", "#c387ff", "#5aa50f", "#d25a96", "#5a69e1", "#e1ff69", "#3cffb4", "#d28778", "#b4b4ff",
  "#b43c78", "#d2b487", "#87d2c3", "#964bb4", "#ffc3ff", "#69871e", "#9678d2", "#b4fff0", "#2d783c", "#d2e178",
];
const RAMP = {
  light: [[0x3b, 0x2f, 0x7d], [0x2b, 0x6f, 0x9e], [0x1d, 0x93, 0x7c], [0x7f, 0xa8, 0x1c], [0xd9, 0x8a, 0x04]],
  dark: [[0x7a, 0x6b, 0xd8], [0x4a, 0x96, 0xd0], [0x35, 0xb7, 0x9a], [0xa4, 0xd2, 0x4a], [0xfd, 0xe7, 0x4c]],
};

export const isDark = () => document.documentElement.dataset.theme === "dark";

export function colour(n, dark = isDark()) {
  const palette = dark ? DARK : LIGHT;
  return palette[n % palette.length];
}

// From 0, the lowest, to 1, in equal steps of lightness.
export function ramp(part, dark = isDark()) {
  const stops = RAMP[dark ? "dark" : "light"];
  const place = Math.min(1, Math.max(0, part || 0)) * (stops.length - 1);
  const n = Math.min(Math.floor(place), stops.length - 2);
  return `rgb(${stops[n].map((c, i) => Math.round(c + (stops[n + 1][i] - c) * (place - n))).join(" ")})`;
}

// A place in the palette for each run: its own number as long as that is free, so that a filter does not change colours.
export function places(indices) {
  const taken = new Set(), found = new Map();
  for (const index of indices) {
    let n = index % LIGHT.length;
    if (taken.size < LIGHT.length) while (taken.has(n)) n = (n + 1) % LIGHT.length;
    taken.add(n);
    found.set(index, n);
  }
  return found;
}
