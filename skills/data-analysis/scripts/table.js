/**
 * Reads CSV or JSON as a table, tells what is in it, and answers questions about it. Sums of decimal numbers are exact.
 *
 * Input: { "text": "…" }, how to read it ("format": "csv" or "json", "separator", "header", "decimal", "path"), and a question
 * ("where", "groupBy", "aggregate", "select", "sort", "limit", "as"), whose forms SKILL.md tells.
 * Result: without a question, the columns and the first rows; else { "total", "shown", "notes", "rows" or "text" }.
 */

const MAX_TEXT = 2_000_000;
const MAX_ROWS = 200_000;
const MAX_COLUMNS = 500;
const MAX_SHOWN = 500;
const MAX_DEPTH = 5;
const QUESTION = ["where", "groupBy", "aggregate", "select", "sort", "limit", "as"];

export default function table(input) {
  const { text, format, decimal = "." } = input ?? {};
  if (typeof text !== "string") throw new Error('expected { "text": "name,price\\nTea,3.50" }');
  if (text.length > MAX_TEXT) throw new Error(`text: expected at most ${MAX_TEXT} characters, got ${text.length}`);
  const source = text.replace(/^\uFEFF/, "");
  const isJson = format === "json" || (format === undefined && /^\s*[[{]/.test(source));
  const read = isJson ? fromJson(source, input.path) : fromCsv(source, input);
  if (decimal === ",") read.rows = read.rows.map((row) => row.map(pointed));
  return QUESTION.some((key) => input[key] !== undefined) ? answer(read, input) : describe(read);
}

function requireFew(rows, columns) {
  if (rows > MAX_ROWS) throw new Error(`expected at most ${MAX_ROWS} rows`);
  if (columns > MAX_COLUMNS) throw new Error(`expected at most ${MAX_COLUMNS} columns`);
}
const pointed = (cell) =>
  /^-?\d{1,3}(\.?\d{3})*(,\d+)?$/.test(cell) ? cell.replace(/\./g, "").replace(",", ".") : cell;

// CSV (RFC 4180, and what spreadsheets make of it)

function fromCsv(text, { separator = guessSeparator(text), header = true }) {
  if (typeof separator !== "string" || separator.length !== 1) throw new Error("separator: expected one character");
  const lines = splitCsv(text, separator).filter((cells) => cells.length > 1 || cells[0] !== "");
  if (lines.length === 0) throw new Error("text: expected at least one row");
  const columns = distinctNames(header ? lines.shift() : lines[0].map(() => ""));
  const uneven = lines.filter((cells) => cells.length !== columns.length).length;
  const rows = lines.map((cells) => columns.map((_, at) => cells[at] ?? ""));
  const note = `${uneven} rows do not have ${columns.length} cells: missing ones are empty, others left out`;
  return { columns, rows, notes: uneven > 0 ? [note] : [] };
}

/** The one of the usual separators that is most often at the beginning, outside quotes. */
function guessSeparator(text) {
  const start = text.slice(0, 10_000).replace(/"[^"]*"/g, "");
  const counts = [",", ";", "\t", "|"].map((one) => [one, start.split(one).length]);
  return counts.reduce((best, one) => (one[1] > best[1] ? one : best))[0];
}

function splitCsv(text, separator) {
  const lines = [];
  let [cells, at, lineEnd, next] = [[], 0, -1, -1];
  const source = text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text;
  // The end of the text where there is none.
  const indexFrom = (sign) => (source.indexOf(sign, at) + source.length + 1) % (source.length + 1);
  while (at <= source.length) {
    let cell = "";
    if (source[at] === '"') {
      const start = at++;
      for (;;) {
        const quote = source.indexOf('"', at);
        const begins = source.slice(start, start + 40);
        if (quote < 0) throw new Error(`the quote in row ${lines.length + 1} does not end: "${begins}"`);
        cell += source.slice(at, quote);
        at = quote + 1;
        if (source[at] !== '"') break;
        cell += '"';
        at++;
      }
    }
    if (lineEnd < at) lineEnd = indexFrom("\n");
    if (next < at) next = indexFrom(separator);
    const end = Math.min(lineEnd, next);
    cell += source.slice(at, end);
    cells.push(cell);
    requireFew(lines.length - 1, cells.length);
    if (end === lineEnd) {
      lines.push(cells);
      cells = [];
    }
    at = end + 1;
  }
  return lines;
}

function distinctNames(given) {
  const names = given.map((name, at) => name.trim() || `column ${at + 1}`);
  return names.map((name, at) => {
    const times = names.slice(0, at).filter((other) => other === name).length;
    return times === 0 ? name : `${name} (${times + 1})`;
  });
}

function fromJson(text, path) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`text: expected CSV, or valid JSON: ${error.message}`);
  }
  const notes = [];
  for (const key of path ? path.split(".") : []) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) {
      const known = Object.keys(value ?? {}).slice(0, 30);
      throw new Error(`path: there is no "${key}"; there are: ${known.join(", ")}`);
    }
    value = value[key];
  }
  if (!Array.isArray(value) && typeof value === "object" && value !== null && !path) {
    const lists = Object.keys(value).filter((key) => Array.isArray(value[key]));
    if (lists.length === 1) {
      notes.push(`the rows are those of "${lists[0]}"`);
      value = value[lists[0]];
    } else if (lists.length > 1) throw new Error(`path: expected one of ${lists.join(", ")}`);
  }
  const items = (Array.isArray(value) ? value : [value]).map((item) => flatten(item, "", new Map(), 0));
  const columns = [...new Set(items.flatMap((item) => [...item.keys()]))];
  requireFew(items.length, columns.length);
  return { columns, rows: items.map((item) => columns.map((column) => item.get(column) ?? "")), notes };
}

function flatten(value, name, into, depth) {
  if (typeof value === "object" && value !== null && !Array.isArray(value) && depth < MAX_DEPTH) {
    for (const key of Object.keys(value)) flatten(value[key], name ? `${name}.${key}` : key, into, depth + 1);
  } else if (value !== null) {
    into.set(name || "value", typeof value === "string" ? value : JSON.stringify(value));
  }
  return into;
}

const NUMBER = /^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/;
/** Most texts begin with a letter, which is quicker to tell. */
const isNumber = (cell) => cell.charCodeAt(0) <= 57 && NUMBER.test(cell);
const isPlain = (cell) => /^-?\d{0,30}\.?\d{0,20}$/.test(cell);

const isDate = (cell) => /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?$/.test(cell);
const typeOf = (cells) => (cells.every(isNumber) ? "number" : cells.every(isDate) ? "date" : "text");

/** Exact for decimal numbers; those with an exponent are added as they are. */
function sum(cells) {
  if (!cells.every(isPlain)) return String(cells.reduce((total, cell) => total + Number(cell), 0));
  const places = cells.reduce((most, cell) => Math.max(most, (cell.split(".")[1] ?? "").length), 0);
  const total = cells.reduce((whole, cell) => {
    const [before, after = ""] = cell.split(".");
    return whole + BigInt(before + after.padEnd(places, "0"));
  }, 0n);
  const digits = (total < 0n ? -total : total).toString().padStart(places + 1, "0");
  const behind = digits.slice(digits.length - places).replace(/0+$/, "");
  return `${total < 0n ? "-" : ""}${digits.slice(0, digits.length - places)}${places > 0 && behind !== "" ? `.${behind}` : ""}`;
}

const rounded = (number) => String(Number(number.toPrecision(12)));
function median(cells) {
  const numbers = Float64Array.from(cells, Number).sort();
  const half = numbers.length >> 1;
  return rounded(numbers.length % 2 === 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2);
}

/** To compare: numbers by size and before texts, texts without regard to case. */
const keyOf = (cell) => (isNumber(cell) ? Number(cell) : cell.toLowerCase());
const compare = (a, b) => (typeof a !== typeof b ? (typeof a === "number" ? -1 : 1) : a < b ? -1 : a > b ? 1 : 0);

/** The first cell in the order of `way`: 1 for the least, -1 for the greatest. */
function furthest(cells, way) {
  const keyed = cells.map((cell) => ({ cell, key: keyOf(cell) }));
  return smallest(keyed, 1, (a, b) => way * compare(a.key, b.key))[0].cell;
}

const [least, greatest] = [1, -1].map((way) => (cells) => furthest(cells, way));
const OF_NUMBERS = { sum, mean: (cells) => rounded(Number(sum(cells)) / cells.length), median };
const AGGREGATES = { ...OF_NUMBERS, min: least, max: greatest, distinct: (cells) => String(new Set(cells).size) };

function describe({ columns, rows, notes }) {
  const described = columns.map((name, at) => {
    const cells = rows.map((row) => row[at]).filter((cell) => cell !== "");
    const about = { name, type: "text", filled: cells.length, empty: rows.length - cells.length };
    if (cells.length === 0) return about;
    const counts = new Map();
    for (const cell of cells) counts.set(cell, (counts.get(cell) ?? 0) + 1);
    const values = [...counts.keys()];
    const common = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3);
    const mostCommon = common.map(([value, count]) => ({ value: short(value), count }));
    const type = typeOf(values);
    if (type === "text") return { ...about, distinct: counts.size, mostCommon };
    const range = { ...about, type, distinct: counts.size, min: least(values), max: greatest(values) };
    if (type !== "number") return { ...range, mostCommon };
    const total = sum(cells);
    return { ...range, sum: total, mean: rounded(Number(total) / cells.length), median: median(cells) };
  });
  const first = rows.slice(0, 3).map((row) => asObject(columns, row.map(short)));
  return { rows: rows.length, columns: described, first, notes };
}

const short = (text) => (text.length > 100 ? `${text.slice(0, 100)}…` : text);
const asObject = (columns, row) => Object.fromEntries(columns.map((column, at) => [column, row[at]]));

function answer(read, { where = [], groupBy = [], aggregate = [], select, sort = [], limit = 20, as = "rows" }) {
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_SHOWN) throw new Error(`limit: expected 1 to ${MAX_SHOWN}`);
  const list = (value) => (Array.isArray(value) ? value : [value]);
  const tests = list(where).map((one) => condition(read.columns, one));
  let result = { ...read, rows: read.rows.filter((row) => tests.every((test) => test(row))) };
  if (list(groupBy).length > 0 || list(aggregate).length > 0) result = grouped(result, list(groupBy), list(aggregate));
  const ways = list(sort).map((key) => [indexOf(result.columns, key.replace(/^-/, "")), key.startsWith("-") ? -1 : 1]);
  const keyed = result.rows.map((row) => ({ row, keys: ways.map(([at]) => keyOf(row[at])) }));
  const compareRows = (a, b) => ways.reduce((order, [, way], at) => order || way * compare(a.keys[at], b.keys[at]), 0);
  const first = ways.length > 0 ? smallest(keyed, limit, compareRows) : keyed.slice(0, limit);
  const chosen = select === undefined ? result.columns : list(select);
  const places = chosen.map((name) => indexOf(result.columns, name));
  const shown = first.map(({ row }) => places.map((at) => row[at]));
  const about = { total: result.rows.length, shown: shown.length, notes: read.notes };
  if (as === "rows") return { ...about, rows: shown.map((row) => asObject(chosen, row)) };
  if (as !== "csv") throw new Error('as: expected "rows" or "csv"');
  return { ...about, text: [chosen, ...shown].map((row) => row.map(quoted).join(",")).join("\n") };
}

/** In their order, equal ones as they came; without sorting all the others. */
function smallest(rows, most, compareRows) {
  const kept = [];
  for (const row of rows) {
    if (kept.length === most && compareRows(row, kept[most - 1]) >= 0) continue;
    let [low, high] = [0, kept.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareRows(row, kept[middle]) < 0) high = middle;
      else low = middle + 1;
    }
    kept.splice(low, 0, row);
    if (kept.length > most) kept.pop();
  }
  return kept;
}

function indexOf(columns, name) {
  const at = columns.indexOf(name);
  if (at >= 0) return at;
  throw new Error(`there is no column "${name}"; there are: ${columns.slice(0, 50).join(", ")}`);
}

function named(table, name, field) {
  if (Object.hasOwn(table, name)) return table[name];
  throw new Error(`${field}: there is no "${name}"; there are: ${Object.keys(table).join(" ")}`);
}

function condition(columns, { column, is = "=", value }) {
  const at = indexOf(columns, column);
  const text = String(value ?? "");
  const key = keyOf(text);
  const wanted = new Set((Array.isArray(value) ? value : [text]).map((one) => keyOf(String(one))));
  const ordered = (fits) => (cell) => cell !== "" && fits(compare(keyOf(cell), key));
  const tests = {
    "=": (cell) => keyOf(cell) === key,
    "!=": (cell) => keyOf(cell) !== key,
    "<": ordered((order) => order < 0),
    "<=": ordered((order) => order <= 0),
    ">": ordered((order) => order > 0),
    ">=": ordered((order) => order >= 0),
    contains: (cell) => cell.toLowerCase().includes(text.toLowerCase()),
    in: (cell) => wanted.has(keyOf(cell)),
    empty: (cell) => cell === "",
    filled: (cell) => cell !== "",
  };
  const test = named(tests, is, "where");
  return (row) => test(row[at]);
}

function grouped({ columns, rows, notes }, groupBy, aggregate) {
  const places = groupBy.map((name) => indexOf(columns, name));
  const groups = new Map();
  for (const row of rows) {
    const key = JSON.stringify(places.map((at) => row[at]));
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  if (groups.size === 0 && groupBy.length === 0) groups.set("[]", []);
  const asked = aggregate.length > 0 ? aggregate : [{ fn: "count" }];
  const names = asked.map(({ fn, column }) => (column === undefined ? fn : `${fn} of ${column}`));
  const results = [...groups].map(([key, group]) => [
    ...JSON.parse(key),
    ...asked.map((one) => aggregated(one, columns, group)),
  ]);
  return { columns: [...groupBy, ...names], rows: results, notes };
}

function aggregated({ fn, column }, columns, rows) {
  if (fn === "count" && column === undefined) return String(rows.length);
  const at = indexOf(columns, column);
  const cells = rows.map((row) => row[at]).filter((cell) => cell !== "");
  if (fn === "count") return String(cells.length);
  const run = named(AGGREGATES, fn, "aggregate");
  const other = Object.hasOwn(OF_NUMBERS, fn) && cells.find((cell) => !isNumber(cell));
  if (other) throw new Error(`${fn} of ${column}: "${short(other)}" is not a number`);
  return cells.length === 0 ? (fn === "sum" || fn === "distinct" ? "0" : "") : run(cells);
}

const quoted = (cell) => (/[",\n\r]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell);
