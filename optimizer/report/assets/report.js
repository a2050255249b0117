// Sorting, filtering, paging, goal scores on demand, and the theme. Text enters the page through textContent only.
(function () {
  "use strict";
  var root = document.documentElement;

  // --- theme: follows the system unless told otherwise
  var button = document.getElementById("theme");
  var themes = ["auto", "light", "dark"];
  function stored() { try { return localStorage.getItem("trimtab-theme") || "auto"; } catch (e) { return "auto"; } }
  function setTheme(name) {
    if (themes.indexOf(name) < 0) name = "auto";
    if (name === "auto") delete root.dataset.theme; else root.dataset.theme = name;
    button.textContent = "Theme: " + name;
    button.dataset.now = name;
    try { localStorage.setItem("trimtab-theme", name); } catch (e) { /* a page without storage */ }
  }
  button.hidden = false;
  setTheme(stored());
  button.addEventListener("click", function () { setTheme(themes[(themes.indexOf(button.dataset.now) + 1) % 3]); });

  function make(tag, text, attributes) {
    var node = document.createElement(tag);
    if (text !== undefined && text !== null) node.textContent = text;
    Object.keys(attributes || {}).forEach(function (key) { node.setAttribute(key, attributes[key]); });
    return node;
  }

  function grouped(number) { return number.toLocaleString("en-US"); }

  // --- tables: sort by a heading, show in pages, filter
  function Table(node) {
    this.node = node;
    this.body = node.tBodies[0];
    this.rows = Array.prototype.slice.call(this.body.rows);
    this.page = Number(node.dataset.page);
    this.shown = this.page;
    this.accept = function () { return true; };
    this.details = new Map();
    this.report = null;
    this.addHeadings();
    this.addPages();
    this.draw();
  }

  // --- narrow screens: a row becomes a card, so each cell needs the name of its column
  document.querySelectorAll(".scroll > table").forEach(function (node) {
    if (!node.tHead || !node.tBodies.length) return;
    var names = Array.prototype.map.call(node.tHead.rows[0].cells, function (cell) { return cell.textContent; });
    Array.prototype.forEach.call(node.tBodies[0].rows, function (row) {
      Array.prototype.forEach.call(row.cells, function (cell, column) {
        cell.dataset.label = names[column];
        if (cell.textContent.trim() === "–") cell.classList.add("nothing");
      });
    });
    node.classList.add("cards");
  });
  Table.prototype.addHeadings = function () {
    var self = this;
    Array.prototype.forEach.call(this.node.tHead.rows[0].cells, function (cell, column) {
      if (!cell.dataset.sort) return;
      var sorter = make("button", cell.textContent, { type: "button" });
      cell.dataset.name = cell.textContent; // print shows it: browsers repeat no buttons on the next page
      cell.textContent = "";
      cell.appendChild(sorter);
      cell.setAttribute("aria-sort", "none");
      sorter.addEventListener("click", function () { self.sort(cell, column); });
    });
  };
  Table.prototype.sort = function (cell, column) {
    var down = cell.getAttribute("aria-sort") === "ascending" ||
      (cell.getAttribute("aria-sort") === "none" && cell.dataset.sort === "number" && column > 1);
    this.node.tHead.querySelectorAll("[aria-sort]").forEach(function (c) { c.setAttribute("aria-sort", "none"); });
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    var numeric = cell.dataset.sort === "number";
    var keyed = this.rows.map(function (row, i) {
      var at = row.cells[column];
      var raw = at.dataset.v !== undefined ? at.dataset.v : at.textContent;
      return { row: row, i: i, key: numeric ? (isNaN(parseFloat(raw)) ? -Infinity : parseFloat(raw)) : raw };
    });
    keyed.sort(function (a, b) {
      var order = numeric ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true });
      return (down ? -order : order) || a.i - b.i;
    });
    this.rows = keyed.map(function (k) { return k.row; });
    this.draw();
  };
  Table.prototype.addPages = function () {
    var self = this;
    this.pages = make("div", null, { "class": "pages" });
    this.next = make("button", "Show more", { type: "button" });
    this.all = make("button", "Show all", { type: "button" });
    this.count = make("span", "");
    this.pages.append(this.next, this.all, this.count);
    this.next.addEventListener("click", function () { self.shown += self.page; self.draw(); });
    this.all.addEventListener("click", function () { self.shown = Infinity; self.draw(); });
    this.node.parentNode.after(this.pages);
  };
  Table.prototype.draw = function () {
    var fitting = this.rows.filter(this.accept), self = this;
    var visible = fitting.slice(0, this.printing ? Infinity : this.shown), fragment = document.createDocumentFragment();
    visible.forEach(function (row) {
      fragment.appendChild(row);
      if (self.details.has(row)) fragment.appendChild(self.details.get(row));
    });
    if (!fitting.length) {
      var none = make("tr");
      none.appendChild(make("td", "Nothing fits these filters. Clear one, or all of them.", { colspan: this.node.tHead.rows[0].cells.length, "class": "none" }));
      fragment.appendChild(none);
    }
    this.body.replaceChildren(fragment);
    this.pages.hidden = visible.length === fitting.length;
    this.count.textContent = grouped(visible.length) + " of " + grouped(fitting.length) + " shown";
    if (this.report) this.report.textContent = grouped(fitting.length) + " of " + grouped(this.rows.length);
  };

  var tables = new Map();
  document.querySelectorAll("table[data-page]").forEach(function (node) { tables.set(node, new Table(node)); });

  // --- filters over the actions
  document.querySelectorAll("form.filters").forEach(function (form) {
    var table = tables.get(document.getElementById(form.dataset.for));
    if (!table) return;
    form.hidden = false;
    table.report = form.querySelector("output");
    function has(list, value) { return (" " + list + " ").indexOf(" " + value + " ") >= 0; }
    function apply() {
      var words = form.elements.text.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
      var type = form.elements.type.value, goal = form.elements.goal.value, broker = form.elements.broker.value;
      table.accept = function (row) {
        if (type && row.dataset.type !== type) return false;
        if (goal && !has(row.dataset.goals, goal)) return false;
        if (broker && !has(row.dataset.brokers, broker)) return false;
        if (!words.length) return true;
        if (row.haystack === undefined) row.haystack = row.textContent.toLowerCase();
        return words.every(function (word) { return row.haystack.indexOf(word) >= 0; });
      };
      table.shown = table.page;
      table.draw();
    }
    form.addEventListener("input", apply);
    form.addEventListener("submit", function (event) { event.preventDefault(); });
    form.addEventListener("reset", function () { setTimeout(apply, 0); });
    apply();
  });

  // --- goal scores of one action
  var node = document.getElementById("goal-scores");
  var actions = document.getElementById("action-table");
  if (node && actions) {
    var scores = JSON.parse(node.textContent), list = tables.get(actions);
    var detail = function (row, seq) {
      var inner = make("table"), head = make("tr"), body = make("tbody"), thead = make("thead");
      inner.appendChild(make("caption", "Goal scores of action " + seq + " (above 0.5: better; 0.5: unchanged)", { "class": "quiet" }));
      ["goal", "score", "broker", "score before", "score after"].forEach(function (text, i) {
        head.appendChild(make("th", text, i % 5 === 0 ? { scope: "col" } : { scope: "col", "class": "num" }));
      });
      thead.appendChild(head);
      inner.append(thead, body);
      var unchanged = [];
      (scores.actions[seq] || []).forEach(function (part) {
        var brokers = part[2].filter(function (b) { return b[1] !== b[2]; });
        if (!brokers.length) { unchanged.push(scores.goals[part[0]]); return; }
        brokers.forEach(function (b, i) {
          var line = make("tr");
          if (i === 0) {
            line.appendChild(make("th", scores.goals[part[0]], { scope: "rowgroup", rowspan: brokers.length }));
            line.appendChild(make("td", part[1].toFixed(3), { "class": "num", rowspan: brokers.length }));
          }
          line.appendChild(make("td", b[0], { "class": "num" }));
          var digits = b[1].toFixed(3) === b[2].toFixed(3) ? 5 : 3;
          line.appendChild(make("td", b[1].toFixed(digits), { "class": "num" }));
          line.appendChild(make("td", b[2].toFixed(digits), { "class": "num" }));
          body.appendChild(line);
        });
      });
      var outer = make("tr", null, { "class": "detail", id: "detail-" + seq }), cell = make("td", null, { colspan: row.cells.length });
      cell.appendChild(inner);
      if (unchanged.length) cell.appendChild(make("p", "Unchanged: " + unchanged.join(", "), { "class": "quiet" }));
      outer.appendChild(cell);
      return outer;
    };
    list.rows.forEach(function (row) { row.querySelector("button.more").hidden = false; });
    actions.addEventListener("click", function (event) {
      var more = event.target.closest("button.more");
      if (!more) return;
      var row = more.closest("tr"), seq = row.cells[1].dataset.v;
      if (list.details.has(row)) {
        list.details.get(row).remove();
        list.details.delete(row);
      } else {
        var below = detail(row, seq);
        list.details.set(row, below);
        row.after(below);
        more.setAttribute("aria-controls", below.id);
      }
      more.setAttribute("aria-expanded", String(list.details.has(row)));
      more.textContent = list.details.has(row) ? "\u25BE" : "\u25B8";
    });
  }

  function print(on) {
    if (on) document.querySelectorAll("details").forEach(function (d) { d.open = true; });
    tables.forEach(function (table) { table.printing = on; table.draw(); });
  }
  window.addEventListener("beforeprint", function () { print(true); });
  window.addEventListener("afterprint", function () { print(false); });
})();
