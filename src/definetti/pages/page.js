"use strict";
// Sorting, searching, axes, highlighting and charts of a report. No library, no network, nothing is evaluated, and text
// from a model only ever becomes text nodes and attributes.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = JSON.parse($("#data").textContent);
  const SVG = "http://www.w3.org/2000/svg";

  function node(name, attributes = {}, ...children) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    for (const child of children) made.append(child);
    return made;
  }

  // --- numbers --------------------------------------------------------------------------------------------------
  const logit = (p) => { const q = Math.min(Math.max(p, 1e-9), 1 - 1e-9); return Math.log(q / (1 - q)); };
  const few = (value, digits = 3) => value == null ? "–" : Number(value.toPrecision(digits)).toString();
  const LOGIT_TICKS = [1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.999, 0.9999, 1 - 1e-6];

  function ticks(low, high, count) {
    const raw = (high - low) / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw) || raw;
    const out = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) out.push(Number((k * step).toPrecision(12)));
    return out;
  }
  function decades(low, high) {
    const out = [];
    for (let k = Math.ceil(low - 1e-9); k <= high + 1e-9; k++) out.push(10 ** k);
    return out;
  }

  // --- the table: axis, sorting, searching ------------------------------------------------------------------------
  const body = $("#orbits tbody"), rows = body ? $$("tr", body) : [];
  const ends = rows.flatMap((row) => $$("svg.ci", row).flatMap((ci) => [Number(ci.dataset.l), Number(ci.dataset.h)]));

  function domain(kind) {
    const inner = ends.filter((x) => kind === "linear" || (x > 1e-9 && x < 1 - 1e-9));
    let low = Math.min(...inner, 1), high = Math.max(...inner, 0);
    if (low > high) [low, high] = [0, 1];
    if (kind === "linear") {
      if (high - low > 0.5) return [0, 1];
      const margin = 0.06 * (high - low) || 0.05;
      return [Math.max(low - margin, 0), Math.min(high + margin, 1)];
    }
    const [a, b] = [logit(low), logit(high)], margin = 0.05 * (b - a) || 1;
    return [a - margin, b + margin];
  }
  function setAxis(kind) {
    const [low, high] = domain(kind), scale = kind === "linear" ? (p) => p : logit;
    const at = (p) => Math.min(Math.max((scale(p) - low) / (high - low), 0), 1) * 96 + 2;
    for (const row of rows) for (const ci of $$("svg.ci", row)) {
      const [line, dot] = [$("line", ci), $("circle", ci)];
      line.setAttribute("x1", `${at(Number(ci.dataset.l)).toFixed(3)}%`);
      line.setAttribute("x2", `${at(Number(ci.dataset.h)).toFixed(3)}%`);
      dot.setAttribute("cx", `${at(Number(ci.dataset.p)).toFixed(3)}%`);
    }
    const axis = $("#axis");
    if (!axis) return;
    const all = kind === "linear" ? ticks(low, high, 4) : LOGIT_TICKS.filter((p) => logit(p) >= low && logit(p) <= high);
    axis.replaceChildren();
    let last = -100;
    const gap = Math.max(14, 3600 / (axis.clientWidth || 300));
    for (const p of all) {
      const x = at(p);
      if (x - last < gap) continue;
      last = x;
      axis.append(node("text", { x: `${x}%`, y: 12, "text-anchor": x < 8 ? "start" : x > 92 ? "end" : "middle" }, String(p)));
    }
    document.documentElement.dataset.axis = kind;
  }
  for (const radio of $$("input[name=axis]")) radio.addEventListener("change", () => setAxis(radio.value));
  const checked = $("input[name=axis]:checked");
  if (checked) setAxis(checked.value);

  for (const button of $$("#orbits th button")) button.addEventListener("click", () => {
    const head = button.closest("th"), key = button.dataset.key;
    const up = head.getAttribute("aria-sort") === (key === "name" ? "ascending" : "descending");
    const sign = (key === "name") !== up ? 1 : -1;
    for (const other of $$("#orbits th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const value = (row) => key === "name" ? row.dataset.name : row.dataset[key] === "" ? -Infinity : Number(row.dataset[key]);
    const compare = (a, b) => key === "name" ? a.localeCompare(b, undefined, { numeric: true }) : a === b ? 0 : a < b ? -1 : 1;
    rows.sort((a, b) => sign * compare(value(a), value(b)));
    body.append(...rows);
  });

  const search = $("#search"), found = $("#found");
  if (search) search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const holds = row.dataset.name.toLowerCase().includes(wanted);
      row.hidden = !holds;
      count += holds;
    }
    found.textContent = wanted ? `${count} of ${rows.length} rows` : "";
  });

  // --- orbits: a row, its members in the picture, its curves -------------------------------------------------------
  const said = $("#said");
  let shown = null;
  function light(orbit) {
    if (orbit === shown) return;
    shown = orbit;
    for (const on of $$(".on")) on.classList.remove("on");
    for (const picture of $$(".picture")) picture.classList.toggle("lit", orbit != null);
    if (orbit == null) { if (said) said.textContent = said.dataset.rest; return; }
    for (const member of $$(`[data-o="${Number(orbit)}"]`)) member.classList.add("on");
    const row = rows.find((r) => r.dataset.o === String(orbit));
    if (row && said) said.textContent = row.dataset.said;
  }
  const orbitOf = (event) => { const at = event.target.closest("[data-o]"); return at ? at.dataset.o : null; };
  for (const area of $$("#orbits tbody, .picture")) {
    area.addEventListener("pointerover", (event) => light(orbitOf(event)));
    area.addEventListener("pointerleave", () => light(null));
    area.addEventListener("focusin", (event) => light(orbitOf(event)));
    area.addEventListener("focusout", () => light(null));
    const choose = (event) => {
      const orbit = orbitOf(event);
      if (orbit == null) return;
      light(orbit);
      const row = rows.find((r) => r.dataset.o === orbit);
      if (row && area.classList.contains("picture")) row.scrollIntoView({ block: "nearest" });
      if (row) pick(row.dataset.name);
    };
    area.addEventListener("click", choose);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(event); }
    });
  }

  // --- charts --------------------------------------------------------------------------------------------------------
  function frame(holder, options) {
    // An SVG as wide as its place, with axes; returns it with the scales.
    const width = Math.max(holder.clientWidth || 600, 240), height = options.height || 260;
    const left = options.left || 62, right = 14, top = 12, bottom = 38;
    const { x: [x0, x1], y: [y0, y1] } = options;
    const X = (v) => left + (v - x0) / (x1 - x0 || 1) * (width - left - right);
    const Y = (v) => height - bottom - (v - y0) / (y1 - y0 || 1) * (height - top - bottom);
    const svg = node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.label });
    for (const v of options.xticks || ticks(x0, x1, Math.max(2, Math.floor(width / 110)))) {
      svg.append(node("line", { class: "grid", x1: X(v), x2: X(v), y1: top, y2: height - bottom }));
      svg.append(node("text", { x: X(v), y: height - bottom + 16, "text-anchor": "middle" }, options.xtext ? options.xtext(v) : v.toLocaleString("en")));
    }
    for (const v of options.yticks || ticks(y0, y1, 5)) {
      svg.append(node("line", { class: "grid", x1: left, x2: width - right, y1: Y(v), y2: Y(v) }));
      svg.append(node("text", { x: left - 8, y: Y(v) + 4, "text-anchor": "end" }, options.ytext ? options.ytext(v) : String(v)));
    }
    svg.append(node("text", { class: "title", x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, options.xtitle));
    holder.replaceChildren(svg);
    return { svg, X, Y, width, height, left, right, top, bottom };
  }
  const short = (name) => name.length > 20 ? name.slice(0, 12) + "…" + name.slice(-7) : name;
  const margin = (list) => 16 + 7.6 * Math.max(6, ...list.map((one) => short(one.name).length));
  const path = (points) => points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const known = (xs, ys) => xs.map((x, k) => [x, ys[k]]).filter(([, y]) => y != null);

  const trace = data.convergence;
  let picked = 0;
  function running() {
    const holder = $("#running");
    if (!trace || !holder) return;
    const one = trace.series[picked], warm = trace.warm_up.length ? trace.warm_up : [];
    const burn = warm.length ? warm[warm.length - 1] : 0;
    const points = trace.sweeps.map((t, k) => [t, one.value[k], one.half_width[k]]).filter(([, v]) => v != null);
    const late = points.slice(Math.floor(points.length / 4)), sure = late.filter(([, , h]) => h != null);
    const of = (list) => list.flatMap(([, v, h]) => [v - (h || 0), v + (h || 0)]);
    let low = Math.min(...of(sure.length ? sure : late)), high = Math.max(...of(sure.length ? sure : late));
    const margin = 0.6 * (high - low) || 0.01;
    [low, high] = [Math.max(low - margin, 0), Math.min(high + margin, 1)];
    const chart = frame(holder, {
      x: [-burn, trace.sweeps[trace.sweeps.length - 1]], y: [low, high],
      xtitle: burn ? "sweeps; the warm-up, left of 0, is dropped" : "kept sweeps", label: `running estimate of ${one.name}`,
      ytext: (v) => few(v, 6),
    });
    const { svg, X, Y, top, bottom, height, left, width, right } = chart;
    const clip = node("clipPath", { id: "inside" }, node("rect", { x: left, y: top, width: width - left - right, height: height - top - bottom }));
    const inside = node("g", { "clip-path": "url(#inside)" });
    svg.append(clip, inside);
    if (burn) {
      inside.append(node("rect", { class: "warm", x: X(-burn), y: top, width: X(0) - X(-burn), height: height - top - bottom }));
      let begin = 0;
      warm.forEach((end, k) => {
        const v = one.warm_up[k];
        if (v != null) inside.append(node("line", { class: "window", x1: X(begin - burn), x2: X(end - burn), y1: Y(v), y2: Y(v) }));
        begin = end;
      });
    }
    const band = points.filter(([, , h]) => h != null);
    if (band.length > 1) {
      const up = band.map(([t, v, h]) => [X(t), Y(v + h)]), down = band.map(([t, v, h]) => [X(t), Y(v - h)]).reverse();
      inside.append(node("path", { class: "band", d: path([...up, ...down]) + "Z" }));
    }
    inside.append(node("path", { class: "line", d: path(points.map(([t, v]) => [X(t), Y(v)])) }));
    const [, last, half] = points[points.length - 1];
    inside.append(node("circle", { class: "dot", cx: X(points[points.length - 1][0]), cy: Y(last), r: 3.5 }));
    const [used, orbit, standard] = one.final;
    $("#picked").textContent = `${one.name}, orbit of ${one.size.toLocaleString("en")}: ${few(last, 6)} ± ${few(half, 2)} by the estimator ${one.estimator}; ` +
      `half-widths: ${one.estimator} ${few(used, 2)}, orbit ${few(orbit, 2)}, standard ${few(standard, 2)}`;
  }
  function mixing() {
    const holder = $("#mixing");
    if (!trace || !holder) return;
    const values = trace.series.flatMap((one) => one.rhat).filter((v) => v != null);
    if (!values.length) { holder.textContent = "Too few batches for R-hat."; return; }
    const high = Math.min(Math.max(...values, 1.06), 3) + 0.005;
    const { svg, X, Y, left, width, right } = frame(holder, {
      x: [0, trace.sweeps[trace.sweeps.length - 1]], y: [0.995, high], xtitle: "kept sweeps", label: "R-hat over time",
    });
    const worst = trace.sweeps.map((t, k) => Math.max(...trace.series.map((one) => one.rhat[k] ?? 0))).map((v) => v || null);
    svg.append(node("line", { class: "limit", x1: left, x2: width - right, y1: Y(1.05), y2: Y(1.05) }));
    svg.append(node("text", { class: "note", x: width - right - 4, y: Y(1.05) - 5, "text-anchor": "end" }, "1.05: not trusted above"));
    const cut = (list) => known(trace.sweeps, list).map(([t, v]) => [X(t), Y(Math.min(Math.max(v, 0.995), high))]);
    for (const one of trace.series.slice(0, 60)) svg.append(node("path", { class: "thin", d: path(cut(one.rhat)) }));
    svg.append(node("path", { class: "line", d: path(cut(worst)) }));
    const end = cut(worst).pop();
    if (end) svg.append(node("circle", { class: "dot", cx: end[0], cy: end[1], r: 3.5 }));
    svg.append(node("path", { class: "line second", d: path(cut(trace.series[picked].rhat)) }));
  }
  function estimators() {
    const holder = $("#estimators");
    if (!trace || !holder) return;
    const names = ["used", "orbit", "standard"];
    const list = trace.series.filter((one) => one.final.filter((v) => v > 0).length > 1)
      .sort((a, b) => (b.final[2] ?? b.final[1] ?? 0) - (a.final[2] ?? a.final[1] ?? 0)).slice(0, 24);
    if (!list.length) { holder.textContent = "No half-widths to compare: the numbers are exact, or the run was too short."; return; }
    const all = list.flatMap((one) => one.final).filter((v) => v > 0).map(Math.log10);
    const low = Math.min(...all) - 0.1, high = Math.max(...all) + 0.1;
    const step = Math.max(1, Math.ceil((high - low) / 6));
    const left = margin(list);
    const { svg, X, Y } = frame(holder, {
      x: [low, high], y: [-0.6, list.length - 0.4], left, height: 20 * list.length + 60, xtitle: "95 % half-width",
      xticks: decades(low, high).map(Math.log10).filter((v, k) => k % step === 0), xtext: (v) => few(10 ** v, 2),
      yticks: list.map((_, k) => k), ytext: (k) => short(list[list.length - 1 - k].name),
      label: "half-widths of the estimator that was used, of the orbit and of the standard estimator",
    });
    list.forEach((one, k) => {
      const y = Y(list.length - 1 - k), at = one.final.filter((v) => v > 0).map((v) => X(Math.log10(v)));
      svg.append(node("line", { class: "link", x1: Math.min(...at), x2: Math.max(...at), y1: y, y2: y }));
      one.final.forEach((v, which) => {
        if (!(v > 0)) return;
        const title = node("title", {}, `${one.name}: ${which ? names[which] : one.estimator} ± ${few(v, 3)}`);
        const mark = { class: `e${which}` }, x = X(Math.log10(v));
        svg.append(which === 0 ? node("circle", { ...mark, cx: x, cy: y, r: 5 }, title)
          : which === 1 ? node("rect", { ...mark, x: x - 4.5, y: y - 4.5, width: 9, height: 9 }, title)
            : node("path", { ...mark, d: `M${x} ${y - 6}L${x + 6} ${y + 5}L${x - 6} ${y + 5}Z` }, title));
      });
    });
  }
  function comparisons() {
    $$(".against").forEach((holder, which) => {
      const list = data.comparisons[which].rows;
      if (!list.length) return;
      const reach = Math.max(...list.map((r) => Math.abs(r.d) + (r.e || 0)), 1e-12);
      const left = margin(list);
      const { svg, X, Y, height, bottom, top } = frame(holder, {
        x: [-reach * 1.08, reach * 1.08], y: [-0.6, list.length - 0.4], left, height: 20 * list.length + 60, xtitle: "difference, with 95 % interval",
        xtext: (v) => few(v, 3), yticks: list.map((_, k) => k),
        ytext: (k) => short(list[list.length - 1 - k].name),
        label: "differences",
      });
      svg.append(node("line", { class: "zero", x1: X(0), x2: X(0), y1: top, y2: height - bottom }));
      list.forEach((r, k) => {
        const y = Y(list.length - 1 - k), kind = r.far ? "far" : "near";
        if (r.e) svg.append(node("line", { class: kind, x1: X(r.d - r.e), x2: X(r.d + r.e), y1: y, y2: y }));
        const z = r.z == null ? "" : `, z = ${r.z}`;
        svg.append(node("circle", { class: kind, cx: X(r.d), cy: y, r: 4 }, node("title", {}, `${r.name}: ${r.d}${z}`)));
      });
    });
  }
  function draw() { running(); mixing(); estimators(); comparisons(); }
  const select = $("#series");
  function pick(name) {
    if (!trace) return;
    const at = trace.series.findIndex((one) => one.name === name || one.name.startsWith(`${name}=`));
    if (at < 0) return;
    picked = at;
    select.value = String(at);
    running();
    mixing();
  }
  if (trace && select) {
    picked = Number(select.value);
    select.addEventListener("change", () => { picked = Number(select.value); running(); mixing(); });
  }
  draw();
  let width = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    draw();
  });
  addEventListener("beforeprint", draw);
  for (const button of $$("button.copy")) button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText($(button.dataset.of).textContent); button.textContent = "copied"; }
    catch { getSelection().selectAllChildren($(button.dataset.of)); button.textContent = "selected"; }
  });
  document.documentElement.dataset.ready = "yes";
})();
