// A diff's hunks as rows to draw: lines paired for the side-by-side view, words that differ marked.

import { diffWordsWithSpace } from "../vendor/jsdiff/diff/word.js";

const LONGEST = 600;
const MOST_PAIRS = 2000;
const LEAST_ALIKE = 0.5;
const MOST_COMPARED = 2500;

/** Return which ranges of two lines differ, or null when they have too little in common for that to help. */
export function differingRanges(before, after) {
  if (before.length > LONGEST || after.length > LONGEST) return null;
  const ranges = { before: [], after: [] };
  let alike = 0;
  let left = 0;
  let right = 0;
  for (const { value, added, removed } of diffWordsWithSpace(before, after)) {
    if (added) {
      ranges.after.push([right, right + value.length]);
      right += value.length;
    } else if (removed) {
      ranges.before.push([left, left + value.length]);
      left += value.length;
    } else {
      alike += value.trim().length;
      left += value.length;
      right += value.length;
    }
  }
  return alike >= LEAST_ALIKE * Math.min(before.trim().length, after.trim().length) ? ranges : null;
}

/** Mark ranges in a line's pieces: [class, text] becomes [class, text] with "mark" added inside of a range. */
export function marked(pieces, ranges) {
  if (!ranges || ranges.length === 0) return pieces;
  const result = [];
  let at = 0;
  let next = 0;
  for (const [scope, text] of pieces) {
    let from = 0;
    while (from < text.length) {
      while (next < ranges.length && ranges[next][1] <= at + from) next += 1;
      const range = ranges[next];
      const inside = range !== undefined && range[0] <= at + from;
      const until = range === undefined ? text.length : (inside ? range[1] : range[0]) - at;
      const end = Math.min(text.length, until);
      result.push([inside ? `${scope} mark`.trim() : scope, text.slice(from, end)]);
      from = end;
    }
    at += text.length;
  }
  return result;
}

function likeness(before, after) {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return (start + end + 1) / (Math.max(before.length, after.length) + 1);
}

/** Put removed lines beside the added ones that they are most like, in order; null where there is none. */
export function pairs(removed, added) {
  const [rows, columns] = [removed.length, added.length];
  if (rows === columns || rows * columns > MOST_COMPARED) {
    return Array.from({ length: Math.max(rows, columns) }, (_, index) => [removed[index] ?? null, added[index] ?? null]);
  }
  const best = Array.from({ length: rows + 1 }, () => new Float64Array(columns + 1));
  const alike = removed.map((left) => added.map((right) => likeness(left.text.trim(), right.text.trim())));
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      const both = best[row + 1][column + 1] + alike[row][column];
      best[row][column] = Math.max(both, best[row + 1][column], best[row][column + 1]);
    }
  }
  const found = [];
  let [row, column] = [0, 0];
  while (row < rows || column < columns) {
    if (row < rows && column < columns && best[row][column] === best[row + 1][column + 1] + alike[row][column]) {
      found.push([removed[row], added[column]]);
      row += 1;
      column += 1;
    } else if (row < rows && (column === columns || best[row][column] === best[row + 1][column])) {
      found.push([removed[row], null]);
      row += 1;
    } else {
      found.push([null, added[column]]);
      column += 1;
    }
  }
  return found;
}

/**
 * Return the hunks as lists of pairs {left, right, kind}: `left` and `right` are {number, text, ranges, kind, ended} or null.
 * A removed line stands beside the added one that it is most like.
 */
export function pairedHunks(hunks) {
  let budget = MOST_PAIRS;
  return hunks.map((hunk) => {
    const rows = [];
    let left = hunk.from_lines === 0 ? hunk.from_start + 1 : hunk.from_start;
    let right = hunk.to_lines === 0 ? hunk.to_start + 1 : hunk.to_start;
    let removed = [];
    let added = [];
    const flush = () => {
      for (const [before, after] of pairs(removed, added)) {
        const pair = { left: before, right: after, kind: "change" };
        if (pair.left && pair.right && budget > 0) {
          budget -= 1;
          const ranges = differingRanges(pair.left.text, pair.right.text);
          pair.left.ranges = ranges?.before ?? null;
          pair.right.ranges = ranges?.after ?? null;
        }
        rows.push(pair);
      }
      removed = [];
      added = [];
    };
    for (const line of hunk.lines) {
      const text = line.text;
      const ended = line.has_newline;
      if (line.kind === "remove") {
        removed.push({ number: left, text, ended, kind: "remove" });
        left += 1;
      } else if (line.kind === "add") {
        added.push({ number: right, text, ended, kind: "add" });
        right += 1;
      } else {
        flush();
        rows.push({
          left: { number: left, text, ended, kind: "context" },
          right: { number: right, text, ended, kind: "context" },
          kind: "context",
        });
        left += 1;
        right += 1;
      }
    }
    flush();
    return { hunk, rows };
  });
}

/** Return paired rows as the lines of a unified view: of each run of changes, what was removed before what was added. */
export function unifiedRows(rows) {
  const lines = [];
  let added = [];
  const flush = () => {
    lines.push(...added);
    added = [];
  };
  for (const { left, right, kind } of rows) {
    if (kind === "context") {
      flush();
      lines.push({ ...right, before: left.number, after: right.number });
      continue;
    }
    if (left) lines.push({ ...left, before: left.number, after: null });
    if (right) added.push({ ...right, before: null, after: right.number });
  }
  flush();
  return lines;
}
