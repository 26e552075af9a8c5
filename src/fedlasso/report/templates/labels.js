// Where words go so that they cover neither marks nor each other.

// Places at least `gap` apart, in their order and between the ends, moved as little as needed.
function spread(places, gap, [first, last]) {
  const order = places.map((p, i) => i).sort((a, b) => places[a] - places[b]);
  const moved = order.map((i) => places[i]);
  for (let turn = 0; turn < 200; turn++) {
    let still = true;
    for (let i = 1; i < moved.length; i++) {
      const short = gap - (moved[i] - moved[i - 1]);
      if (short > 0.01) {
        moved[i - 1] -= short / 2;
        moved[i] += short / 2;
        still = false;
      }
    }
    for (let i = 0; i < moved.length; i++) {
      const held = Math.min(Math.max(moved[i], first + gap * i), last - gap * (moved.length - 1 - i));
      if (Math.abs(held - moved[i]) > 0.01) {
        moved[i] = held;
        still = false;
      }
    }
    if (still) break;
  }
  return places.map((_, i) => moved[order.indexOf(i)]);
}

function widthOfWords(words, size) {
  return 0.57 * size * String(words).length;
}

// Words in as many lines as the room needs; "E = 5" stays together.
function breakWords(words, room, size) {
  const lines = [];
  for (const word of words.split(/(?<!=) (?!=)/)) {
    const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
    if (lines.length && widthOfWords(longer, size) <= room) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

function overlap(a, b) {
  const across = Math.min(a[2], b[2]) - Math.max(a[0], b[0]);
  const down = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  return across > 0 && down > 0 ? across * down : 0;
}

// Places along a broken line, so that words can keep clear of it.
function along(corners, step = 8) {
  return corners.flatMap(([x, y], i) => {
    const [left, top] = corners[Math.max(0, i - 1)];
    const pieces = Math.max(1, Math.ceil(Math.hypot(x - left, y - top) / step));
    return Array.from({ length: pieces }, (_, k) => {
      const share = (k + 1) / pieces;
      return [left + share * (x - left), top + share * (y - top)];
    });
  });
}

// Words along a level line, above or below it, where they cover the fewest marks; rather at its end.
// A mark is a place, or a bar from one height to another.
function nameLine(words, y, marks, box, { size = 11 } = {}) {
  const wide = widthOfWords(words, size);
  const dots = marks.map(([x, top, end = top]) => [x - 6, top - 6, x + 6, end + 6]);
  const offers = [1, 0.8, 0.6, 0.4, 0.2, 0].flatMap((share) => {
    const left = box.left + 2 + share * (box.right - box.left - wide - 4);
    return [
      [left, y - size - 3],
      [left, y + 3],
    ];
  });
  const costs = offers.map(([left, top], i) =>
    dots.reduce((sum, dot) => sum + overlap([left, top, left + wide, top + size], dot), i),
  );
  const [left, top] = offers[costs.indexOf(Math.min(...costs))];
  return text(left, top + size - 1.5, words, { size, colour: "var(--soft)", halo: true });
}

// Words beside their marks: each goes where it covers least of the marks and of the words before it.
function nameMarks(labels, marks, box, { size = 10.5, colour = "var(--soft)", weight } = {}) {
  const dots = marks.map(([x, y]) => [x - 5, y - 5, x + 5, y + 5]);
  const placed = [];
  return labels.flatMap(({ x, y, words, method }) => {
    const [wide, high] = [widthOfWords(words, size) * (weight ? 1.22 : 1), size + 2];
    const offers = [9, 16, 26, 38, 52].flatMap((far) => [
      [x - far - wide, y - high / 2],
      [x + far, y - high / 2],
      [x - wide / 2, y - far - high + 3],
      [x - wide / 2, y + far - 3],
      [x - wide - far / 2, y - far - high / 2],
      [x + far / 2, y - far - high / 2],
      [x - wide - far / 2, y + far - high / 2],
      [x + far / 2, y + far - high / 2],
    ]);
    const cost = (offer, i) => {
      const own = [offer[0], offer[1], offer[0] + wide, offer[1] + high];
      const outside = wide * high - overlap(own, [box.left, box.top - 8, box.right + 8, box.bottom]);
      return (
        4 * outside +
        placed.reduce((sum, each) => sum + 4 * overlap(own, each), 0) +
        dots.reduce((sum, each) => sum + overlap(own, each), 0) +
        2 * i
      );
    };
    const costs = offers.map(cost);
    const best = costs.indexOf(Math.min(...costs));
    const [left, top] = offers[best];
    placed.push([left - 5, top, left + wide + 5, top + high]);
    const middle = [left + wide / 2, top + high / 2];
    const leader =
      best < 8
        ? []
        : [
            rule(x, y, Math.max(left, Math.min(x, left + wide)), y < middle[1] ? top : top + high, {
              colour: "var(--soft)",
              width: 0.6,
            }).replace("mark rule", "leader"),
          ];
    return [...leader, text(left, top + size - 0.5, words, { size, colour, weight, method, halo: true })];
  });
}
