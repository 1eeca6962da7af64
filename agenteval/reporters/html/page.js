"use strict";
// The list of all scenarios and the conversations. Everything else is in the page without this script.
// Text from agents, tools, users and models is inserted as text nodes only, and cleaned as in all reports.
(() => {
  const ROWS = 200; // rows that are added to the list at a time
  const LINES = 12; // lines of a value that are shown before it is unfolded
  const LINE = 90; // characters of a value that is shown on one line
  const DEEPEST = 20; // levels of a value that are indented
  const QUOTE = 4000; // characters of a quotation that are looked for where its white space differs
  const KEPT = 6; // unpacked blocks that stay in memory
  const SIGNS = { passed: "✓", failed: "✗", inconclusive: "?", tolerated: "○" };
  const KEYS = [
    ["j k", "next and previous row or conversation"],
    ["n p", "next and previous conversation that did not pass"],
    ["o Enter", "open"],
    ["u Esc", "back to the list"],
    ["e", "next epoch"],
    ["/", "filter"],
    ["c", "copy the command that runs the scenario again"],
    ["?", "this help"],
  ];
  const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
  const DIGITS = new Uint8Array(128);
  [...ALPHABET].forEach((character, digit) => { DIGITS[character.charCodeAt(0)] = digit; });
  const page = document.documentElement;
  const find = (id) => document.getElementById(id);

  // ── elements ─────────────────────────────────────────────────────────────────────────────────

  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, clean(String(value)));
    }
    return fill(made, children);
  }

  function fill(place, children) {
    const shown = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "");
    place.replaceChildren(...shown.map((child) => (child instanceof Node ? child : clean(String(child)))));
    return place;
  }

  // What agenteval.core.safe_text.clean does: nothing is hidden or shown in another order, and no sequence is obeyed.
  const SEQUENCES = new RegExp([
    "(?:\\x1b\\[|\\x9b)[0-?]*[ -/]*[@-~]",
    "(?:\\x1b[\\]PX^_]|[\\x90\\x98\\x9d-\\x9f])[^\\x07\\x1b\\x90\\x98\\x9c-\\x9f\\n\\r]*(?:\\x07|\\x1b\\\\|\\x9c)",
    "\\x1b[ -/]+[0-~]",
  ].join("|"), "g");
  const CONTROLS = new RegExp("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e"
    + "\\u2066-\\u2069\\u200b\\u2060\\ufeff\\u{e0000}-\\u{e007f}]", "gu");

  function clean(text) {
    if (/^[ -~\n\t]*$/.test(text)) return text;
    const plain = text.replace(SEQUENCES, "").replace(/\r\n?|[\u2028\u2029]/g, "\n");
    return wellFormed(plain.replace(CONTROLS, ""));
  }

  const wellFormed = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");

  const span = (kind, ...children) => element("span", { class: kind }, ...children);
  const button = (text, onclick, more = {}) => element("button", { type: "button", onclick, ...more }, text);
  const verdict = (word, text = word) => span(`verdict ${word}`, `${SIGNS[word] || "•"} ${text}`);
  const announce = (text) => { find("status").textContent = text; };

  // ── data ─────────────────────────────────────────────────────────────────────────────────────

  async function unpack(id) {
    if (!find(id)) throw new Error("it is missing");
    const bytes = decodeBase85(find(id).textContent);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  function decodeBase85(text) {
    const length = ((text.length - 1) / 5) * 4;
    const bytes = new DataView(new ArrayBuffer(length));
    for (let at = 0; at < length / 4; at += 1) {
      let word = 0;
      for (let next = at * 5 + 1; next <= at * 5 + 5; next += 1) word = word * 85 + DIGITS[text.charCodeAt(next)];
      bytes.setUint32(at * 4, word);
    }
    return new Uint8Array(bytes.buffer, 0, length - Number(text[0])); // the rest pads the last four bytes
  }

  const unpacked = new Map();
  function block(id) {
    if (!unpacked.has(id)) {
      unpacked.set(id, unpack(id));
      if (unpacked.size > KEPT) unpacked.delete(unpacked.keys().next().value);
    }
    return unpacked.get(id);
  }

  async function readBlock(number) {
    const [count, ...lines] = (await block(`block-${number}`)).split("\n");
    return { results: lines.slice(0, Number(count)), records: lines.slice(Number(count)) };
  }

  // A number that a script cannot hold, such as a long id, stays as it was written where the browser can do that.
  function parse(json) {
    return JSON.parse(json, (_, value, written) => (
      typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER && written && JSON.rawJSON
        ? JSON.rawJSON(written.source) : value
    ));
  }

  let index = null;
  let conversations = []; // every epoch of every row, in the order of the list

  function prepare(value) {
    index = value;
    index.rows.forEach((row, at) => {
      const issues = (row.issues || []).map((id) => index.issues[id] || "");
      const texts = [row.id, row.name, row.reason, row.agent, row.where, ...(row.tags || []), ...issues];
      row.text = bare(texts.filter(Boolean).join("\n"));
      row.at = at;
      row.epochs = (row.epochs || []).map(([epoch, variant, result, packed, line]) => (
        { row, epoch, variant, result, packed, line }
      ));
      conversations.push(...row.epochs);
    });
    conversations.forEach((each, at) => {
      each.at = at;
      each.isFine = each.result === "passed" && !(index.log && each.row.severity);
    });
    // Where a rule about all conversations failed although each passed, the first one stands for them.
    for (const row of index.rows) {
      const isRed = ["failed", "inconclusive"].includes(row.is[0]);
      if (isRed && row.epochs.every((each) => each.isFine) && row.epochs.length) row.epochs[0].isFine = false;
    }
  }

  // ── links ────────────────────────────────────────────────────────────────────────────────────

  function query(fields) {
    const words = Object.entries(fields).filter(([, value]) => value);
    return words.map(([key, value]) => `${key}=${encodeURIComponent(wellFormed(value))}`).join("&");
  }

  // The link to the rows with a tag. A tag that contains blanks is kept together; its own quotation marks do not count.
  const tagLink = (tag) => listLink(`tag:${/\s/.test(tag) ? `"${tag.replace(/"/g, "")}"` : tag.replace(/"/g, "")}`);

  const listLink = (text, everywhere) => `#/?${query({ q: text, all: everywhere ? "1" : "" })}`;

  function linkTo(conversation, turn = null, beside = null) {
    const { row, epoch, variant } = conversation;
    const place = turn === null ? "" : `/turn/${turn + 1}`;
    const fields = { agent: row.agent, variant, beside: beside && `${beside.epoch + 1},${beside.variant}` };
    return `#/c/${encodeURIComponent(wellFormed(row.id))}/${epoch + 1}${place}?${query(fields)}`;
  }

  function readLink() {
    const [path, text = ""] = location.hash.slice(1).split("?");
    const fields = Object.fromEntries(text.split("&").filter(Boolean).map((word) => {
      const at = word.indexOf("=");
      return at < 0 ? [word, ""] : [word.slice(0, at), decode(word.slice(at + 1))];
    }));
    return { parts: path.split("/").slice(1).map(decode), fields, isPlace: path !== "" && !path.startsWith("/") };
  }

  function decode(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  // ── the filter ───────────────────────────────────────────────────────────────────────────────

  // A word of the filter, and a name that it is compared with: quotation marks only keep a word together.
  const bare = (text) => clean(text).replace(/"/g, "").toLowerCase();

  const NAMED = {
    v: (row, value) => row.is.includes(value),
    verdict: (row, value) => row.is.includes(value),
    is: (row, value) => row.is.includes(value),
    id: (row, value) => bare(row.id).includes(value),
    tag: (row, value) => (row.tags || []).some((tag) => bare(tag) === value),
    tool: (row, value) => (row.tools || []).some((tool) => bare(tool) === value),
    issue: (row, value) => (row.issues || []).some((id) => bare(id) === value),
    agent: (row, value) => bare(row.agent) === value,
    category: (row, value) => bare(row.category) === value,
    severity: (row, value) => row.severity === value,
  };
  const COMPARED = {
    "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b,
    "=": (a, b) => a === b,
  };

  function measure(row, name) {
    if (name === "cost") return row.cost;
    if (name === "ms" || name === "time") return row.ms;
    const metric = name.replace(/^score\./, "");
    const values = row.values || {};
    const full = Object.keys(values).find((key) => key.toLowerCase() === metric) || index.metrics[metric];
    return full === undefined ? undefined : values[full];
  }

  // The words of a filter that are not terms, and a function for each term and word.
  function readFilter(text) {
    const rest = [];
    const tests = (text.match(/(?:[^\s"]|"[^"]*")+/g) || []).map((word) => {
      const isNot = word.length > 1 && word.startsWith("-");
      const plain = bare(isNot ? word.slice(1) : word);
      const named = plain.match(/^(\w+):(.+)$/);
      const compared = plain.match(/^([\w.-]+?)(<=|>=|<|>|=)(-?\d+(?:\.\d+)?)$/);
      const isTerm = Boolean((named && Object.hasOwn(NAMED, named[1])) || compared);
      let matches = (row) => row.text.includes(plain);
      if (named && Object.hasOwn(NAMED, named[1])) matches = (row) => NAMED[named[1]](row, named[2]);
      else if (compared) {
        matches = (row) => {
          const value = measure(row, compared[1]);
          return value !== undefined && COMPARED[compared[2]](value, Number(compared[3]));
        };
      }
      if (!isTerm) rest.push(word);
      return { isTerm, matches: isNot ? (row) => !matches(row) : matches };
    });
    return { tests, words: rest.join(" ") };
  }

  // ── the list ─────────────────────────────────────────────────────────────────────────────────

  const list = { text: null, rows: [], shown: 0, hits: null, search: null, top: 0, isWanted: false, focused: null };

  function setUpList() {
    const heads = [index.log ? "severity" : "verdict", index.log ? "record" : "scenario", "reason"];
    const table = find("list");
    if (!index.log) heads.push("epochs");
    const columns = [...heads, ...index.columns.map(([, short]) => short), "cost", "time"];
    const about = { cost: "the agent's cost in all epochs", time: "the mean time of a conversation" };
    table.tHead.replaceChildren(element("tr", {}, columns.map((title, at) => (
      element("th", { scope: "col", class: at >= heads.length ? "number" : null, title: about[title] }, title)
    ))));
    const box = element("input", {
      id: "filter", type: "search", autocomplete: "off", spellcheck: "false", oninput: () => typed(),
      placeholder: "v:failed tag:refund tool:cancel_order score.help<3 words",
    });
    const everywhere = button("Search in all conversations", () => toggleSearch(), { id: "search-all" });
    find("list-tools").replaceChildren(
      element("label", { for: "filter" }, "Filter"), box, everywhere, span("quiet", ""),
    );
    find("list-tools").hidden = false;
    find("list-more").replaceChildren(button("Show more", () => addRows(), { id: "more" }));
  }

  function typed() {
    stopSearch();
    list.hits = null;
    showList(find("filter").value);
    try {
      history.replaceState(null, "", listLink(list.text));
    } catch { /* some browsers refuse more than a hundred changes in half a minute */ }
  }

  function showList(text) {
    list.text = text;
    const { tests } = readFilter(list.hits ? "" : text);
    list.rows = index.rows.filter((row) => (
      (!list.hits || list.hits.has(row)) && tests.every(({ matches }) => matches(row))
    ));
    list.shown = 0;
    find("list").tBodies[0].replaceChildren();
    addRows();
    page.toggleAttribute("data-filtered", text.trim() !== "");
    showState(`${list.rows.length.toLocaleString("en")} of ${index.rows.length.toLocaleString("en")}`);
  }

  function showState(text) {
    find("list-tools").lastChild.textContent = text;
    announce(text);
  }

  function addRows() {
    const more = list.rows.slice(list.shown, list.shown + ROWS);
    // A row that has been drawn is used again, which is what makes a filter quick.
    find("list").tBodies[0].append(...more.map((row) => (list.hits ? drawRow(row) : (row.drawn ??= drawRow(row)))));
    list.shown += more.length;
    const rest = list.rows.length - list.shown;
    find("list-more").hidden = rest === 0;
    find("more").textContent = `Show ${Math.min(rest, ROWS)} more of ${rest.toLocaleString("en")}`;
  }

  function drawRow(row) {
    const first = row.epochs.find((each) => !each.isFine) || row.epochs[0];
    const hit = list.hits && list.hits.get(row);
    const target = hit || first;
    const name = element("td", {},
      target ? element("a", { href: linkTo(target) }, shownId(row)) : shownId(row),
      index.agents.length > 1 ? span("quiet", ` ${row.agent}`) : null,
      row.name ? element("div", { class: "quiet" }, row.name) : null,
      element("div", { class: "tags quiet" }, row.where || ""),
      row.tags ? element("div", { class: "tags" }, row.tags.map((tag) => (
        [element("a", { href: tagLink(tag) }, tag), " "]
      ))) : null);
    return element("tr", { class: ["passed", "reported"].includes(row.is[0]) && !row.severity ? "fine" : null },
      element("td", {}, index.log && (row.severity || row.is[0] === "reported") ? severity(row.severity) : state(row)),
      name,
      element("td", { class: "reason" }, row.is[0] === "passed" && row.severity ? [severity(row.severity), " "] : null,
        row.reason || ""),
      index.log ? null : element("td", { class: "dots" }, row.epochs.map(dot)),
      index.columns.map((_, at) => element("td", { class: "number" }, (row.scores || [])[at] || "")),
      element("td", { class: "number" }, row.cost === undefined ? "" : `$${row.cost.toFixed(4)}`),
      element("td", { class: "number" }, row.ms === undefined ? "" : duration(row.ms)));
  }

  const shownId = (row) => (clean(row.id).trim() ? row.id : "(no visible id)");

  const severity = (word) => (word ? span(`severity ${word}`, word) : null);

  function state(row) {
    const flags = row.is.slice(1).filter((word) => word === "flaky" || word === "accepted");
    return [verdict(row.is[0]), flags.map((word) => element("div", { class: "quiet" }, word))];
  }

  // The conversations of a log without expectations have no verdict.
  const outcome = (each) => (index.log && each.isFine ? null : index.log && each.row.severity
    ? severity(each.row.severity) : verdict(each.result));

  function epochName(each) {
    const name = `${each.variant ? `${each.variant}, ` : ""}epoch ${each.epoch + 1}`;
    if (index.log) return each.row.epochs.length > 1 ? name : "record";
    return `${name}: ${each.result}`;
  }

  function dot(each) {
    const title = epochName(each);
    return element("a", { href: linkTo(each), class: index.log ? "dot" : `dot ${each.result}`, title, "aria-label": title },
      index.log ? "•" : SIGNS[each.result]);
  }

  const duration = (ms) => (ms < 1 ? "<1 ms" : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

  // ── searching in all conversations ───────────────────────────────────────────────────────────

  function stopSearch() {
    if (list.search) list.search.isStopped = true;
    list.search = null;
    find("search-all").textContent = "Search in all conversations";
  }

  function toggleSearch() {
    if (list.search) stopSearch();
    else if (find("filter").value.trim()) location.hash = listLink(find("filter").value, true);
    else find("filter").focus();
    if (readLink().fields.all && !list.search && !list.hits) searchAll(find("filter").value);
  }

  async function searchAll(text) {
    stopSearch();
    const search = { isStopped: false };
    list.search = search;
    list.hits = new Map();
    find("search-all").textContent = "Cancel the search";
    const { tests, words } = readFilter(text);
    const terms = tests.filter(({ isTerm }) => isTerm);
    const wanted = words.toLowerCase();
    const escaped = JSON.stringify(wanted).slice(1, -1);
    const packed = conversations.filter((each) => (
      each.packed !== undefined && terms.every(({ matches }) => matches(each.row))
    ));
    const blocks = [...new Set(packed.map((each) => each.packed))];
    let isWhole = true;
    for (const [at, number] of blocks.entries()) {
      showState(`searching, ${Math.round((100 * at) / blocks.length)} %`);
      const unpackedBlock = await readBlock(number).catch(() => null);
      if (search.isStopped) return;
      if (unpackedBlock === null) {
        isWhole = false;
        continue;
      }
      const { results, records } = unpackedBlock;
      // The JSON text is searched first, which is fast; its keys are not what is meant.
      const perhaps = (json) => json.toLowerCase().includes(escaped);
      const found = new Set(results.flatMap((json, line) => (
        perhaps(json) && contains(parse(json), wanted, true) ? [line] : []
      )));
      for (const each of packed) {
        if (each.packed !== number || list.hits.has(each.row)) continue;
        const record = records[each.line];
        const own = JSON.parse(record.slice(record.lastIndexOf('"results":') + 10, -1));
        if ((perhaps(record) && holds(parse(record), wanted)) || own.some((line) => found.has(line))) list.hits.set(each.row, each);
      }
    }
    stopSearch();
    showList(text);
    if (!isWhole) showState(`${find("status").textContent}; some conversations cannot be read: is the file complete?`);
  }

  // The keys and the fixed words of a record are not a text of the conversation.
  function holds(record, text) {
    const { turns, findings, scores, user_review: review } = record.sample;
    return contains([turns, findings, scores, review, record.note], text, false);
  }

  function contains(value, text, isData) {
    if (typeof value === "string") return value.toLowerCase().includes(text);
    if (value === null || typeof value !== "object") return isData && String(value).includes(text);
    return Object.entries(value).some(([key, each]) => (
      (isData && key.toLowerCase().includes(text)) || contains(each, text, isData || key === "args" || key === "result")
    ));
  }

  // ── a conversation ───────────────────────────────────────────────────────────────────────────

  const current = { conversation: null, record: null };

  async function showConversation(parts, fields) {
    const [, id, epoch, , turn] = parts;
    const [besideEpoch, ...besideVariant] = (fields.beside || "").split(",");
    const ofRow = conversations.filter((each) => (
      each.row.id === id && (!fields.agent || each.row.agent === fields.agent)
    ));
    const matching = (number, variant) => ofRow.find((each) => (
      each.epoch === Number(number) - 1 && each.variant === variant
    ));
    // A link to a scenario does not know its variants and leads to the first one.
    const chosen = matching(epoch, fields.variant || "") || (fields.variant || epoch !== "1" ? null : ofRow[0]);
    const other = besideEpoch ? matching(besideEpoch, besideVariant.join(",")) : null;
    const place = find("conversation");
    current.conversation = chosen || null;
    current.record = null;
    if (!chosen) {
      place.replaceChildren(element("h2", { tabindex: "-1" }, "There is no such conversation in this page"), back());
      return;
    }
    const asked = location.hash;
    const records = await Promise.all([chosen, other].filter(Boolean).map(read));
    if (location.hash !== asked) return;
    current.record = records[0];
    const isChoosing = document.activeElement === find("beside");
    const columns = records.map((record, at) => drawRecord(at ? other : chosen, record, at ? "beside-" : ""));
    place.replaceChildren(...drawHead(chosen, records[0], other),
      element("div", { class: records.length > 1 ? "columns" : "" }, columns));
    const target = turn ? find(`turn-${turn}`) : null;
    if (isChoosing) {
      find("beside").focus();
      return;
    }
    (target || place.querySelector("h2")).focus({ preventScroll: Boolean(target) });
    if (target) target.scrollIntoView();
    else scrollTo(0, 0);
  }

  async function read(conversation) {
    if (conversation.packed === undefined) return null;
    const { results, records } = await readBlock(conversation.packed);
    const record = parse(records[conversation.line]);
    record.sample.turns.flatMap((turn) => turn.tool_calls).forEach((call, at) => {
      call.result = parse(results[record.results[at]]);
    });
    return record;
  }

  const back = () => element("a", { href: listLink(list.text || "", list.hits) }, "← all");

  function drawHead(chosen, record, other) {
    const { row } = chosen;
    const next = nextFailure(chosen, 1);
    const others = row.epochs.filter((each) => each !== chosen);
    const epoch = index.log && row.epochs.length === 1 ? "" : `, epoch ${chosen.epoch + 1}`;
    const name = `${shownId(row)}${chosen.variant ? ` [${chosen.variant}]` : ""}${epoch}`;
    const beside = element("select", {
      id: "beside",
      onchange: (event) => { location.hash = linkTo(chosen, null, others[event.target.value]); },
    }, element("option", { value: "" }, "no other"), others.map((each, at) => (
      element("option", { value: at, selected: each === other },
        epochName(each))
    )));
    document.title = clean(`${shownId(row)} · ${index.run}`);
    return [
      element("p", {}, back(), next ? [" · ", element("a", { href: linkTo(next) }, index.log ? "next with a finding →" : "next that did not pass →")] : null),
      element("h2", { tabindex: "-1" }, index.log ? outcome(chosen) : verdict(row.is[0]), ` ${name}`),
      index.log || row.is[0] === chosen.result ? null
        : element("p", {}, "The scenario: ", verdict(row.is[0]), ". This conversation: ", verdict(chosen.result)),
      row.rules ? element("ul", { class: "rules" }, row.rules.map((rule) => drawRule(rule, chosen))) : null,
      element("p", { class: "quiet" }, [row.name, index.agents.length > 1 ? row.agent : "",
        record ? record.where : row.where].filter(Boolean).join(" · ")),
      record && record.note ? element("p", {}, record.note) : null,
      others.length ? element("p", { class: "epochs" }, "Epochs ", row.epochs.map((each) => (
        each === chosen ? element("b", { "aria-current": "true" }, dot(each).textContent) : dot(each)
      )), element("label", { for: "beside" }, " side by side with "), beside) : null,
      record ? drawButtons(chosen, record) : null,
    ].filter(Boolean);
  }

  function drawButtons(chosen, record) {
    const copies = [
      ["Copy the command to run the scenario again", () => record.repeat, "copy-command"],
      ["Copy the link", () => location.href, "copy-link"],
      ["Copy as Markdown", () => toMarkdown(chosen, record), "copy-markdown"],
      ["Copy as JSON", () => toJson(record), "copy-json"],
    ];
    return element("p", { class: "buttons" }, copies.map(([text, make, id]) => (
      button(text, (event) => copy(make(), event.currentTarget), { id })
    )));
  }

  function drawRecord(conversation, record, prefix) {
    if (!record) {
      const isPlanned = conversation.result === "inconclusive";
      const why = isPlanned ? "This conversation never ran." : "This conversation is left out of the page.";
      return element("article", {}, element("p", {}, why));
    }
    const { sample } = record;
    const whole = { checks: sample.checks, scores: sample.scores, score_failures: sample.score_failures };
    const totals = [
      `${sample.turns.length} ${sample.turns.length === 1 ? "turn" : "turns"}`,
      sample.latency_ms ? duration(sample.latency_ms) : "",
      sample.usage.tokens ? `${sample.usage.estimated ? "≈" : ""}${sample.usage.tokens.toLocaleString("en")} tokens` : "",
      sample.usage.cost ? `$${sample.usage.cost.toFixed(4)}` : "",
      sample.scripted ? "scripted" : "",
    ];
    const numbers = { call: 0 };
    return element("article", { class: "conversation" },
      prefix ? element("h3", {}, outcome(conversation), ` epoch ${sample.epoch + 1}`) : null,
      element("p", { class: "quiet" }, totals.filter(Boolean).join(" · ")),
      drawRules(record, conversation),
      sample.turns.map((turn, at) => drawTurn(conversation, record, turn, at, numbers, prefix)),
      record.end ? element("p", { class: "quiet" }, record.end) : null,
      annotations(conversation, record, whole, null, "The whole conversation"));
  }

  function drawRules(record, conversation) {
    if (!record.rules.length && !(record.sample.accepted || []).length) return null;
    return element("ul", { class: "rules" },
      record.rules.map((rule) => drawRule(rule, conversation)),
      (record.sample.accepted || []).map((rule) => element("li", {}, `○ accepted: ${rule.name} ${rule.detail}`)));
  }

  function drawRule(rule, conversation) {
    const hasTurn = rule.turn !== null && rule.turn !== undefined;
    return element("li", {}, verdict(rule.verdict, rule.name), ` ${rule.detail} `,
      hasTurn ? element("a", { href: linkTo(conversation, rule.turn) }, `turn ${rule.turn + 1}`) : null,
      rule.where ? element("code", { class: "quiet" }, ` ${rule.where}`) : null,
      (rule.fingerprints || []).map((name) => element("code", { class: "quiet" }, ` #${name}`)));
  }

  function drawTurn(conversation, record, turn, at, numbers, prefix) {
    const findings = record.sample.findings.filter((finding) => finding.turn === at);
    const low = record.low.filter(([place]) => place === at).map(([, metric]) => turn.scores[metric]);
    const quotes = [...findings, ...low.filter(Boolean)].map((each) => each.evidence).filter(Boolean);
    const facts = [turn.latency_ms ? duration(turn.latency_ms) : "", turn.steps > 1 ? `${turn.steps} steps` : ""];
    return element("section", { class: "turn", id: `${prefix}turn-${at + 1}`, tabindex: "-1" },
      element("h3", {}, element("a", { href: linkTo(conversation, at) }, `Turn ${at + 1}`), span("quiet", ` ${facts.filter(Boolean).join(" · ")}`)),
      userCalls(turn).map((text) => message("user", text, quotes, "with a tool of its own")),
      message("user", turn.user, quotes, turn.user_model ? `simulated by ${turn.user_model}` : ""),
      drawSteps(record.steps[at], turn, quotes, numbers),
      turn.error ? message("error", turn.error, []) : null,
      turn.state_changes ? element("div", { class: "message call" },
        element("div", { class: "who" }, "state"), element("pre", { "aria-label": "changes of the state" }, turn.state_changes.join("\n"))) : null,
      turn.unplaced ? element("p", { class: "verdict inconclusive" },
        `Not fully seen, so calls may be missing: ${turn.unplaced.join(", ")}`) : null,
      annotations(conversation, record, turn, at, ""));
  }

  function userCalls(turn) {
    return (turn.user_tool_calls || []).map((call) => `${call.name} ${JSON.stringify(call.args)} → ${JSON.stringify(call.result)}`);
  }

  function drawSteps(steps, turn, quotes, numbers) {
    const drawn = [];
    let next = 0;
    const calls = (count) => turn.tool_calls.slice(next, next += count).map((call) => drawCall(call, quotes, numbers));
    for (const step of steps || [{ text: turn.agent, agent: (turn.agents || [])[0], calls: turn.tool_calls.length }]) {
      const text = () => message("agent", step.text ?? turn.agent, quotes, step.agent || "", step.ms);
      // A single step is its calls and then the answer that it led to; of several, each has its own text first.
      if (steps) drawn.push(step.text || (step.text === null && turn.agent) || !step.calls ? text() : null, calls(step.calls));
      else drawn.push(calls(step.calls), text());
    }
    return [...drawn, calls(turn.tool_calls.length)];
  }

  function message(who, text, quotes, note = "", ms = 0) {
    return element("div", { class: `message ${who}` },
      element("div", { class: "who" }, who, note ? span("quiet", ` ${note}`) : null,
        ms ? span("quiet", ` ${duration(ms)}`) : null),
      element("div", { class: "text" }, text ? marked(text, quotes) : span("quiet", "(empty)")));
  }

  function drawCall(call, quotes, numbers) {
    const at = numbers.call++;
    const about = [call.agent, call.attempted ? "not carried out" : "", call.fault ? `fault: ${call.fault}` : "", call.observed ? "" : "answered by agenteval"];
    const sent = call.args === null ? call.raw_args : call.args;
    const hasResult = call.result !== null && call.result !== undefined;
    return element("div", { class: "message call" },
      element("div", { class: "who" }, `call ${at + 1} `, element("code", {}, call.name),
        span("quiet", ` ${about.filter(Boolean).join(" · ")}`)),
      value("arguments", sent, quotes),
      call.error !== undefined ? element("div", { class: "failed" }, "✗ ", value("error", hasResult ? call.result : call.error, quotes)) : null,
      call.error === undefined && hasResult ? value("result", call.result, quotes) : null,
      call.error === undefined && !hasResult ? element("p", { class: "quiet" }, "no result") : null);
  }

  function value(title, content, quotes) {
    const text = pretty(content);
    const rows = text.split("\n");
    if (rows.length <= LINES && text.length < 2000) {
      return element("pre", { "aria-label": title }, marked(text, quotes));
    }
    const start = rows.slice(0, LINES).join("\n").slice(0, 2000);
    const shown = element("pre", { "aria-label": title }, marked(start, quotes));
    const open = button(`Show all ${rows.length} lines`, () => {
      fill(shown, marked(text, quotes));
      open.remove();
    });
    return [shown, open];
  }

  function pretty(content) {
    if (content === undefined) return "not known";
    const json = typeof content === "string" ? content : JSON.stringify(content);
    if (typeof content === "string" && !/^\s*[[{]/.test(content)) return content;
    try {
      JSON.parse(json);
    } catch {
      return content; // text that begins with a bracket
    }
    const text = indented(json);
    const line = text.replace(/\n\s*/g, " ");
    return line.length <= LINE && !/\\n/.test(line) ? line : text;
  }

  // JSON over several lines, however deep it is. Numbers and repeated keys are kept as they were written.
  function indented(json) {
    let depth = 0;
    let isText = false;
    const start = () => `\n${"  ".repeat(Math.min(depth, DEEPEST))}`;
    const text = json.replace(/\\u[0-9a-f]{4}|\\.|["[\]{}:,]|\s+/gi, (token) => {
      if (token === '"') isText = !isText;
      if (isText || token === '"') return token.startsWith("\\u") ? character(token) : token;
      if (token === "[" || token === "{") depth += 1;
      if (token === "]" || token === "}") depth -= 1;
      if (token === ":") return ": ";
      if (token === "," || token === "[" || token === "{") return token + start();
      return token === "]" || token === "}" ? start() + token : "";
    });
    return text.replace(/([[{])\n *\n *(?=[\]}])/g, "$1");
  }

  function character(escape) {
    const made = String.fromCharCode(parseInt(escape.slice(2), 16));
    return made < " " || made === '"' || made === "\\" ? escape : made;
  }

  // The quoted parts of a text, as marks. White space may differ between a quotation and its source.
  function marked(written, quotes) {
    const text = clean(written);
    const spans = quotes.map((quote) => locate(text, clean(quote))).filter(Boolean).sort((a, b) => a[0] - b[0]);
    const parts = [];
    let end = 0;
    for (const [from, to] of spans) {
      if (from < end) continue;
      parts.push(text.slice(end, from), element("mark", {}, text.slice(from, to)));
      end = to;
    }
    return [...parts, text.slice(end)].filter(Boolean);
  }

  function locate(text, quote) {
    const plain = quote.trim();
    const at = plain ? text.indexOf(plain) : -1;
    if (at >= 0) return [at, at + plain.length];
    const words = plain.slice(0, QUOTE).split(/\s+/).slice(0, 300).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const found = words.length > 1 ? new RegExp(words.join("\\s+")).exec(text) : null;
    return found ? [found.index, found.index + found[0].length] : null;
  }

  // ── what was found ───────────────────────────────────────────────────────────────────────────

  function annotations(conversation, record, place, at, title) {
    const findings = record.sample.findings.filter((finding) => finding.turn === at);
    const bad = place.checks.filter((check) => check.passed !== true);
    const held = place.checks.filter((check) => check.passed === true);
    const low = new Set(record.low.filter(([turn]) => turn === at).map(([, metric]) => metric));
    const review = at === null && record.sample.user_review;
    const parts = [
      bad.map((check) => element("div", {}, verdict(check.passed === false ? "failed" : "inconclusive", check.name),
        ` ${check.detail} `, opinions(check.votes))),
      findings.map(drawFinding),
      // A label that is a finding is not listed again.
      Object.entries(place.scores).filter(([metric, score]) => (
        score.value !== null || !findings.some((finding) => finding.metric === metric && finding.detector === "judge")
      )).map(([metric, score]) => drawScore(metric, score, low.has(metric))),
      place.score_failures.map((failure) => element("div", {}, verdict("inconclusive", failure.metric),
        ` no score: ${failure.message}`)),
      review ? element("div", {}, element("b", {}, "The simulated user: "), `${review.label}. ${review.reason}`) : null,
      held.length ? element("details", {}, element("summary", {}, `✓ ${held.length} ${held.length === 1 ? "check" : "checks"} passed`),
        element("ul", {}, held.map((check) => element("li", {}, `${check.name} ${check.detail}`)))) : null,
    ].flat().filter(Boolean);
    const asked = conversation.packed < index.requests ? drawAsked(conversation, at) : null;
    if (!parts.length && at === null) return asked ? element("aside", {}, asked) : null;
    return element("aside", {}, title ? element("h3", {}, title) : null, parts, asked);
  }

  function drawFinding(finding) {
    const by = finding.detector === "judge" ? `judge of ${finding.metric}` : finding.detector;
    return element("div", { class: "finding" }, severity(finding.severity), " ", element("b", {}, finding.label),
      span("quiet", ` ${by}${finding.call === null ? "" : `, call ${finding.call + 1}`}`),
      finding.explanation ? element("div", {}, finding.explanation) : null,
      finding.evidence ? element("q", {}, finding.evidence) : null,
      (finding.also || []).map((text) => element("div", { class: "quiet" }, text)),
      finding.issue ? element("div", {}, "issue ", element("a", { href: listLink(`issue:${finding.issue}`) },
        index.issues[finding.issue] || finding.issue)) : null);
  }

  function drawScore(metric, score, isLow) {
    const text = score.label || (score.value === null ? "" : String(Math.round(score.value * 100) / 100));
    const fine = score.ok === true || (!isLow && score.ok !== false);
    return element("details", { class: "score", open: isLow },
      element("summary", {}, span(isLow ? "failed" : "quiet", isLow ? "↓ " : fine ? "· " : "? "), metric, " ", element("b", {}, text),
        score.scripted ? span("quiet", " scripted") : null),
      element("div", {}, score.reason), score.evidence ? element("q", {}, score.evidence) : null,
      element("div", { class: "quiet" }, `by ${score.by}${score.calibrated ? "" : ", uncalibrated"}`),
      opinions(score.votes));
  }

  function opinions(votes) {
    if (!votes || votes.length < 2) return null;
    return element("ol", { class: "opinions" }, votes.map((vote) => element("li", {},
      element("b", {}, vote.verdict === null ? "no answer" : String(vote.verdict)),
      vote.against ? " (against the agent) " : " ", vote.reason, " ", vote.evidence ? element("q", {}, vote.evidence) : null)));
  }

  function drawAsked(conversation, at) {
    const place = element("div");
    const draw = async () => {
      const { texts, asked } = JSON.parse(await block(`requests-${conversation.packed}`));
      const restore = (name) => {
        const text = Object.hasOwn(texts, name) ? texts[name] : "";
        return typeof text === "string" ? text : text.map(restore).join("");
      };
      const here = asked[conversation.line].filter((each) => (each.turn ?? null) === at);
      const drawn = here.map((each) => element("details", {},
        element("summary", {}, `${each.metric || each.role} · ${each.model || "model not known"}`),
        element("h4", {}, "System prompt"), element("pre", {}, restore(each.asked.system)),
        element("h4", {}, "Prompt"), element("pre", {}, each.asked.prompt.map(restore).join("")),
        element("h4", {}, "Answer"), element("pre", {}, each.answer ? pretty(each.answer) : each.error || "none")));
      return drawn.length ? drawn : [element("p", { class: "quiet" }, "No judge was asked here.")];
    };
    const load = async (event) => {
      if (!event.currentTarget.open || place.childNodes.length) return;
      fill(place, await draw().catch((error) => [`This cannot be read (${error.message}): is the file complete?`]));
    };
    return element("details", { class: "asked", ontoggle: load }, element("summary", {}, "What the judges were asked"), place);
  }

  // ── copying ──────────────────────────────────────────────────────────────────────────────────

  async function copy(text, from) {
    let isCopied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const box = element("textarea", { "aria-label": "text to copy" });
      box.value = text;
      from.after(box);
      box.select();
      isCopied = document.execCommand("copy"); // where the clipboard is refused, for a file in some browsers
      if (isCopied) box.remove();
    }
    announce(isCopied ? "copied" : "press Ctrl+C to copy");
    const title = from.textContent;
    if (isCopied && title !== "Copied") {
      from.textContent = "Copied";
      setTimeout(() => { from.textContent = title; }, 1500);
    }
  }

  function bar(text, shortest) {
    let length = shortest;
    for (const [run] of text.matchAll(/`+/g)) length = Math.max(length, run.length + 1);
    return "`".repeat(length);
  }

  function fence(text) {
    const ticks = bar(text, 3);
    return `${ticks}\n${text}\n${ticks}`;
  }

  // A code span: nothing in it is markup, a link or a mention.
  function code(text) {
    const line = text.replace(/\s+/g, " ").trim();
    const space = /^`|`$/.test(line) ? " " : "";
    return line && bar(line, 1) + space + line + space + bar(line, 1);
  }

  function toJson(record) {
    const { scenario, agent, sample } = record;
    return JSON.stringify({ run: index.run, scenario, agent, ...sample }, null, 2);
  }

  function toMarkdown(conversation, record) {
    const { sample } = record;
    const item = (first, ...texts) => `- ${[first, ...texts].filter(Boolean).map(code).join(": ")}`;
    const by = (who, text) => `**${who}**\n\n${fence(text)}`;
    const call = (each) => [`**call** ${code(each.name)}`, fence(pretty(each.args === null ? each.raw_args : each.args)),
      each.result === null ? "" : `result\n\n${fence(pretty(each.result))}`].filter(Boolean).join("\n\n");
    const found = (turn) => sample.findings.filter((finding) => finding.turn === turn)
      .map((finding) => item(finding.severity, finding.label, finding.explanation)).join("\n");
    const low = (turn) => record.low.filter(([at]) => at === turn).map(([, metric]) => {
      const score = (turn === null ? sample : sample.turns[turn]).scores[metric];
      return score && score.value !== null ? item(metric, String(score.value), score.reason, score.evidence) : "";
    }).filter(Boolean).join("\n");
    const place = (rule) => (rule.turn === null || rule.turn === undefined ? "" : `turn ${rule.turn + 1}`);
    const rules = [...(conversation.row.rules || []), ...record.rules];
    return [
      `## ${code(conversation.row.id)}, ${code(epochName(conversation))}`,
      `Agent ${code(record.agent)}, run ${code(index.run)}, ${code(record.where)}. The scenario: ${conversation.row.is[0]}.`,
      record.note ? fence(record.note) : "",
      rules.map((rule) => item(rule.name, place(rule), rule.detail, rule.where)).join("\n"),
      ...sample.turns.flatMap((turn, at) => [`### Turn ${at + 1}`, ...userCalls(turn).map((text) => by("user", text)), by("user", turn.user), ...turn.tool_calls.map(call),
        turn.error ? by("error", turn.error) : by("agent", turn.agent),
        turn.state_changes ? by("state", turn.state_changes.join("\n")) : "", found(at), low(at)]),
      found(null), low(null), fence(record.repeat),
    ].filter(Boolean).join("\n\n");
  }

  // ── views and keys ───────────────────────────────────────────────────────────────────────────

  function nextFailure(from, step) {
    for (let at = from.at + step; at >= 0 && at < conversations.length; at += step) {
      if (!conversations[at].isFine) return conversations[at];
    }
    return null;
  }

  async function route() {
    const { parts, fields, isPlace } = readLink();
    if (isPlace && (index === null || list.text !== null)) return;
    const name = parts[0] || "";
    if (!find("/").hidden) {
      list.top = scrollY;
      list.focused = document.activeElement.closest("#list a");
    }
    const isConversation = name === "c" && index !== null;
    const view = find(isConversation ? "conversation" : `/${name}`) || find("/");
    for (const each of document.querySelectorAll(".view")) each.hidden = each !== view;
    for (const link of find("views").children) {
      if (link.getAttribute("href") === `#${view.id}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (isConversation) {
      const asked = location.hash;
      await showConversation(parts, fields).catch((error) => {
        if (location.hash !== asked) return;
        const text = `This conversation cannot be shown (${error.message}): is the file complete?`;
        find("conversation").replaceChildren(element("h2", { tabindex: "-1" }, text), back());
      });
      return;
    }
    current.conversation = null;
    document.title = title;
    if (view.id === "/" && index !== null) await routeToList(fields.q || "", Boolean(fields.all));
  }

  async function routeToList(text, everywhere) {
    find("filter").value = text;
    const isDrawn = list.text === text && everywhere === (list.hits !== null);
    if (list.isWanted) find("filter").focus();
    list.isWanted = false;
    if (isDrawn) {
      if (list.focused) list.focused.focus({ preventScroll: true });
      scrollTo(0, list.top);
    }
    else if (everywhere) await searchAll(text);
    else {
      list.hits = null;
      showList(text);
    }
  }

  function move(step) {
    if (current.conversation) {
      const next = conversations[current.conversation.at + step];
      if (next) location.hash = linkTo(next);
      return;
    }
    const links = [...find("list").tBodies[0].querySelectorAll("td:nth-child(2) > a")];
    const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    (links[at + step] || links[at < 0 ? 0 : at] || find("filter")).focus();
  }

  function moveToFailure(step) {
    const from = current.conversation || { at: step > 0 ? -1 : conversations.length };
    const next = nextFailure(from, step);
    if (next) location.hash = linkTo(next);
  }

  function nextEpoch() {
    const { row } = current.conversation;
    const at = row.epochs.indexOf(current.conversation);
    location.hash = linkTo(row.epochs[(at + 1) % row.epochs.length]);
  }

  function showHelp() {
    const close = () => dialog.remove();
    const dialog = element("dialog", { "aria-label": "Keys", onclose: close },
      element("dl", {}, KEYS.map(([keys, text]) => [element("dt", {}, element("kbd", {}, keys)), element("dd", {}, text)])),
      button("Close", () => dialog.close()));
    document.body.append(dialog);
    dialog.showModal();
  }

  const PRESSED = {
    j: () => move(1), k: () => move(-1), n: () => moveToFailure(1), p: () => moveToFailure(-1),
    "/": () => {
      list.isWanted = find("/").hidden;
      if (list.isWanted) PRESSED.u();
      else find("filter").focus();
    },
    u: () => { location.hash = back().getAttribute("href"); },
    Escape: () => { if (current.conversation) PRESSED.u(); },
    o: () => { if (document.activeElement.matches("#list a")) document.activeElement.click(); },
    e: () => { if (current.conversation) nextEpoch(); },
    c: () => { if (current.record && current.conversation) find("copy-command").click(); },
    "?": showHelp,
  };

  function pressed(event) {
    const isTyping = event.target.matches("input, textarea, select");
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (isTyping) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (index !== null && Object.hasOwn(PRESSED, event.key)) {
      event.preventDefault();
      PRESSED[event.key]();
    }
  }

  function setUpTheme() {
    const remember = (theme) => {
      page.style.colorScheme = theme;
      try {
        localStorage.setItem("agenteval-theme", theme);
      } catch { /* storage is refused for some files */ }
    };
    try {
      page.style.colorScheme = localStorage.getItem("agenteval-theme") || "";
    } catch { /* as above */ }
    const isDark = () => (page.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    find("views").append(
      button("Light or dark", () => remember(isDark() ? "light" : "dark"), { id: "theme" }),
      ...(index ? [button("Keys", showHelp, { id: "keys" })] : []),
    );
  }

  const title = document.title;

  // The script precedes what it works on, so that it also runs in a file that was cut off.
  async function start() {
    if (!find("end")) {
      const text = "This file was cut off when it was written or copied. What is missing is not shown.";
      (document.querySelector("header") || document.body).append(element("p", { class: "caveat" }, text));
    }
    if (document.querySelector("footer")) {
      await setUpIndex();
      setUpTheme();
      addEventListener("hashchange", route);
      await route();
    }
    page.dataset.ready = "";
    performance.mark("ready");
  }

  async function setUpIndex() {
    if (!find("index")) return;
    if (typeof DecompressionStream !== "function") {
      find("list-more").textContent = "This browser is too old to show the conversations: it has no DecompressionStream.";
      return;
    }
    try {
      prepare(JSON.parse(await unpack("index")));
      setUpList();
      addEventListener("keydown", pressed);
    } catch (error) {
      index = null;
      find("list-more").textContent = `The conversations in this file cannot be read (${error.message}): is it complete?`;
    }
  }

  if (document.readyState === "loading") addEventListener("DOMContentLoaded", start);
  else start();
})();
