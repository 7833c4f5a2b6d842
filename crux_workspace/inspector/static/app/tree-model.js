// The part of a namespace's tree that was looked at: directories are loaded page by page, and changes are entered as they happen.

import { get } from "./api.js";
import { compareNames, nameOf, parentOf } from "./format.js";

const FIRST_PAGE = 300;
const NEXT_PAGES = 1000;
const FRESH_MS = 1600;
const SETTLE_MS = 250;

const entryOf = (listed) => ({ ...listed, path: listed.path, name: nameOf(listed.path) });

export class Tree {
  constructor(namespace, onChange) {
    this.namespace = namespace;
    this.onChange = onChange;
    this.directories = new Map();
    this.open = new Set(["/"]);
    this.fresh = new Map();
    this.doubtful = new Set();
    this.ended = false;
    this.shown = null;
    this.revealed = null;
  }

  end() {
    this.ended = true;
    clearTimeout(this.doubtTimer);
  }

  changed() {
    this.shown = null;
    if (!this.ended) this.onChange();
  }

  directory(path) {
    return this.directories.get(path);
  }

  /** Load the first page of a directory unless it is there; whoever asks while it comes waits for it too. */
  async ensure(path) {
    const directory = this.directories.get(path);
    if (!directory || directory.error || directory.loading) await this.load(path);
  }

  /** Load the next page of a directory, the first one if none is there; one at a time. */
  load(path) {
    let directory = this.directories.get(path);
    if (directory?.complete) return Promise.resolve();
    if (!directory) {
      directory = { entries: [], names: new Map(), cursor: null, edge: "", complete: false, error: null, loading: null };
      this.directories.set(path, directory);
    }
    directory.loading ??= this.loadPage(path, directory);
    return directory.loading;
  }

  async loadPage(path, directory) {
    directory.error = null;
    this.changed();
    const first = directory.cursor === null;
    try {
      const page = await get("/v1/list", {
        namespace: this.namespace,
        path,
        glob: "false",
        limit: first ? FIRST_PAGE : NEXT_PAGES,
        cursor: directory.cursor,
      });
      for (const listed of page.entries) this.enter(directory, entryOf(listed));
      directory.edge = page.entries.length > 0 ? nameOf(page.entries.at(-1).path) : directory.edge;
      directory.cursor = page.cursor;
      directory.complete = page.cursor === null;
    } catch (error) {
      directory.error = error;
    }
    directory.loading = null;
    this.changed();
  }

  enter(directory, entry) {
    const known = directory.names.get(entry.name);
    if (known) {
      if ((entry.sequence ?? 0) >= (known.sequence ?? 0)) Object.assign(known, entry);
      return;
    }
    directory.names.set(entry.name, entry);
    const { entries } = directory;
    let low = 0;
    let high = entries.length;
    if (high > 0 && compareNames(entries[high - 1].name, entry.name) < 0) low = high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareNames(entries[middle].name, entry.name) < 0) low = middle + 1;
      else high = middle;
    }
    entries.splice(low, 0, entry);
  }

  async expand(path) {
    this.open.add(path);
    this.changed();
    await this.ensure(path);
  }

  collapse(path) {
    this.open.delete(path);
    this.changed();
  }

  /** Open what is above a path, and have the path itself among what is loaded. */
  async reveal(path) {
    this.revealed = path;
    if (path === "/") return;
    const above = [];
    for (let at = parentOf(path); ; at = parentOf(at)) {
      above.unshift(at);
      if (at === "/") break;
    }
    for (const at of above) {
      this.open.add(at);
      await this.ensure(at);
    }
    const directory = this.directories.get(parentOf(path));
    if (!directory || this.revealed !== path) return;
    if (!directory.names.has(nameOf(path))) await this.lookUp(directory, path);
    if (directory.names.get(nameOf(path))?.kind === "directory") await this.expand(path);
    this.changed();
  }

  /** Have a path among what is loaded, wherever in its directory it comes. */
  async lookUp(directory, path) {
    const query = { namespace: this.namespace, path };
    const file = await get("/v1/stat", query).catch(() => null);
    if (file) this.enter(directory, entryOf(file));
    else if ((await get("/v1/is_dir", query).catch(() => null))?.is_dir) {
      this.enter(directory, { kind: "directory", path, name: nameOf(path) });
    }
  }

  /** Load everything that was looked at once more. */
  async refresh() {
    const seen = [...this.directories.keys()].filter((path) => this.open.has(path));
    this.directories.clear();
    await Promise.all(seen.map((path) => this.load(path)));
    if (this.revealed !== null) await this.reveal(this.revealed);
  }

  /** Enter one change of the namespace. */
  apply(event) {
    if (event.type === "delete") this.remove(event.path, event.sequence);
    else {
      if (event.from_path && event.from_path !== event.path) this.remove(event.from_path, event.sequence);
      this.put(event);
    }
    this.changed();
  }

  put({ path, version, sequence, at }) {
    this.touch(path);
    let directory = this.directories.get("/");
    let below = "";
    const names = path.split("/").slice(1);
    for (const [index, name] of names.entries()) {
      if (!directory) return;
      below = `${below}/${name}`;
      const last = index === names.length - 1;
      if (!this.within(directory, name)) return;
      if (last) this.enter(directory, { kind: "file", path, name, version, sequence, updated_at: at });
      else if (!directory.names.has(name)) this.enter(directory, { kind: "directory", path: below, name });
      directory = this.directories.get(below);
    }
  }

  within(directory, name) {
    return directory.complete || directory.names.has(name) || compareNames(name, directory.edge) < 0;
  }

  remove(path, sequence) {
    const parent = parentOf(path);
    const directory = this.directories.get(parent);
    if (!directory) {
      this.doubt(parent);
      return;
    }
    const entry = directory.names.get(nameOf(path));
    if (!entry || (entry.sequence ?? 0) > sequence) return;
    this.drop(directory, entry);
    this.touch(parent);
    if (directory.entries.length === 0 && directory.complete) this.doubt(parent);
  }

  drop(directory, entry) {
    directory.names.delete(entry.name);
    directory.entries.splice(directory.entries.indexOf(entry), 1);
  }

  /** Ask whether a directory is still there: it goes with its last file. */
  doubt(path) {
    if (path === "/") return;
    this.doubtful.add(path);
    clearTimeout(this.doubtTimer);
    this.doubtTimer = setTimeout(() => this.settle(), SETTLE_MS);
  }

  async settle() {
    const asked = [...this.doubtful];
    this.doubtful.clear();
    for (const path of asked) {
      const directory = this.directories.get(parentOf(path));
      const entry = directory?.names.get(nameOf(path));
      if (!entry) {
        this.doubt(parentOf(path));
        continue;
      }
      const query = { namespace: this.namespace, path };
      const found = await get("/v1/is_dir", query).catch(() => null);
      if (this.ended || found === null || found.is_dir || !directory.names.has(entry.name)) continue;
      this.drop(directory, entry);
      this.directories.delete(path);
      this.open.delete(path);
      if (directory.entries.length === 0 && directory.complete) this.doubt(parentOf(path));
    }
    this.changed();
  }

  touch(path) {
    this.fresh.set(path, Date.now());
    setTimeout(() => {
      this.fresh.delete(path);
      this.changed();
    }, FRESH_MS);
  }

  /** Return the rows to draw, from the top: entries, and what tells about a directory that is not wholly there. */
  rows() {
    if (this.shown === null) {
      this.shown = [];
      this.collect("/", 1);
    }
    return this.shown;
  }

  collect(path, level) {
    const directory = this.directories.get(path);
    if (!directory) return;
    const { entries } = directory;
    const size = directory.complete ? entries.length : -1;
    let told = directory.complete || directory.error !== null;
    for (let index = 0; index < entries.length; index += 1) {
      const entry = entries[index];
      if (!told && compareNames(entry.name, directory.edge) > 0) {
        this.shown.push({ type: "gap", key: `${path}//more`, path, level });
        told = true;
      }
      const open = entry.kind === "directory" && this.open.has(entry.path);
      this.shown.push({ type: "entry", key: entry.path, entry, level, open, place: index + 1, size });
      if (open) this.collect(entry.path, level + 1);
    }
    if (directory.error) this.shown.push({ type: "error", key: `${path}//error`, path, level, error: directory.error });
    else if (!told) this.shown.push({ type: "more", key: `${path}//more`, path, level });
    else if (directory.complete && entries.length === 0) this.shown.push({ type: "none", key: `${path}//none`, path, level });
  }
}
