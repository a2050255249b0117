// A table that is sorted by its headings, filtered, and shown a page at a time, over rows that are replaced now and then.

import { fill, make, whole } from "./dom.js";

// columns: {key, title, num, sort: row => number|string, cell: row => node(s)|text, class: row => string, head: bool}
export class Table {
  constructor(place, { columns, caption, name, page, sorted, downwards, more, count }) {
    Object.assign(this, { place, columns, caption, name, page, sorted, downwards: downwards ?? false, more, count });
    this.rows = [];
    this.shown = page;
    this.accept = () => true;
  }
  show(rows) { this.rows = rows; this.draw(); }
  filter(accept) { this.accept = accept; this.shown = this.page; this.draw(); }
  order(column) {
    if (this.sorted === column.key) this.downwards = !this.downwards;
    else { this.sorted = column.key; this.downwards = Boolean(column.num); }
    this.draw();
  }
  draw() {
    const fitting = this.rows.filter(this.accept);
    const by = this.columns.find((c) => c.key === this.sorted);
    if (by) {
      const keyed = fitting.map((row, i) => ({ row, i, key: by.sort(row) }));
      keyed.sort((a, b) => {
        const order = typeof a.key === "number" && typeof b.key === "number" ? a.key - b.key : String(a.key).localeCompare(String(b.key), "en", { numeric: true });
        return (this.downwards ? -order : order) || a.i - b.i;
      });
      fitting.splice(0, fitting.length, ...keyed.map((k) => k.row));
    }
    const visible = fitting.slice(0, this.shown);
    const heads = this.columns.map((c) => make("th", {
      scope: "col", class: c.num && "num", "aria-sort": c.sort && (c.key === this.sorted ? (this.downwards ? "descending" : "ascending") : "none"),
    }, c.sort ? make("button", { type: "button", "data-key": `${this.name}-by-${c.key}`, onclick: () => this.order(c) }, c.title)
      : c.hiddenTitle ? make("span", { class: "hidden" }, c.hiddenTitle) : c.title));
    const lines = visible.map((row) => make("tr", {}, this.columns.map((c) =>
      make(c.head ? "th" : "td", { scope: c.head && "row", class: [c.num && "num", c.class?.(row)].filter(Boolean).join(" ") || null, "data-label": c.label }, c.cell(row)))));
    const empty = make("tr", {}, make("td", { colspan: this.columns.length, class: "quiet" }, "None."));
    const table = make("table", { class: this.name }, make("caption", { class: "quiet" }, this.caption), make("thead", {}, make("tr", {}, heads)),
      make("tbody", {}, lines.length ? lines : empty));
    const total = this.count ? this.count() : fitting.length, left = total > visible.length;
    const buttons = left && make("div", { class: "pages" },
      make("button", { type: "button", "data-key": `${this.name}-more`, onclick: () => this.further() }, "Show more"),
      !this.count && make("button", { type: "button", "data-key": `${this.name}-all`, onclick: () => { this.shown = Infinity; this.draw(); } }, "Show all"),
      make("span", {}, `${whole(visible.length)} of ${whole(total)} shown`));
    const across = this.place.querySelector(".scroll")?.scrollLeft ?? 0;
    fill(this.place, make("div", { class: "scroll" }, table, buttons));
    this.place.firstChild.scrollLeft = across;
    return fitting.length;
  }
  async further() {
    this.shown += this.page * 2;
    if (this.more && this.rows.length < this.shown) await this.more(this.shown);
    this.draw();
  }
}
