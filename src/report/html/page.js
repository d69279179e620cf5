"use strict";
// The page is complete without this script. The script adds buttons, and filters that the fragment
// of the URL can set.
(() => {
  const $ = (id) => document.getElementById(id);
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.previousElementSibling;
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        // A page that was opened from a file may not use the clipboard. Select the text instead, so
        // that the user can copy it with a key.
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
    });
  }
  const form = $("filters");
  if (!form) return;

  // An article may show equal steps of several groups or projects; it lists their paths.
  const steps = [...document.querySelectorAll("details.step")].map((element) => {
    const article = element.closest("article");
    const alike = article.querySelector("details.alike")?.textContent ?? "";
    return {
      element,
      article,
      path: (article.querySelector("h3").firstChild.textContent + alike).toLowerCase(),
      times: Number(article.dataset.times ?? 1),
      facets: element.dataset,
      text: null,
    };
  });
  const all = steps.reduce((sum, step) => sum + step.times, 0);
  const textOf = (step) => (step.text ??= step.path + step.element.textContent.toLowerCase());
  const chosen = { action: new Set(), whose: new Set(), outcome: new Set() };

  // Counts the steps by the value of a facet. Values have the order of the page, actions that of the
  // header.
  const values = (facet) => {
    const found = new Map();
    if (facet === "action") for (const action of ["create", "change", "remove"]) found.set(action, 0);
    for (const { facets, times } of steps) {
      if (facet in facets) found.set(facets[facet], (found.get(facets[facet]) ?? 0) + times);
    }
    return found;
  };
  const names = { action: "Action", whose: "Whose", outcome: "Outcome" };
  for (const facet of Object.keys(chosen)) {
    const found = values(facet);
    if (found.size === 0) continue;
    const set = document.createElement("fieldset");
    const legend = document.createElement("legend");
    legend.textContent = names[facet];
    set.append(legend);
    for (const [value, number] of found) {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.dataset.facet = facet;
      chip.dataset.value = value;
      const many = document.createElement("b");
      many.textContent = number;
      chip.append(value + " ", many);
      chip.addEventListener("click", () => {
        if (!chosen[facet].delete(value)) chosen[facet].add(value);
        show();
      });
      set.append(chip);
    }
    $("facets").append(set);
  }
  for (const [value, number] of [...values("section")].sort()) {
    $("section").append(new Option(`${value} (${number})`, value));
  }

  // Shows the steps that match the filters, and writes the filters to the fragment of the URL.
  const show = (tell = true) => {
    const words = $("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    const section = $("section").value;
    let shown = 0;
    const articles = new Map();
    for (const step of steps) {
      const fits =
        (!section || step.facets.section === section) &&
        Object.entries(chosen).every(([f, set]) => set.size === 0 || set.has(step.facets[f])) &&
        words.every((word) => textOf(step).includes(word));
      if (step.element.hidden === fits) step.element.hidden = !fits;
      articles.set(step.article, (articles.get(step.article) ?? false) || fits);
      shown += fits ? step.times : 0;
    }
    const parts = new Map();
    for (const [article, fits] of articles) {
      article.hidden = !fits;
      parts.set(article.parentElement, (parts.get(article.parentElement) ?? false) || fits);
    }
    for (const [part, fits] of parts) part.hidden = !fits;
    for (const chip of document.querySelectorAll("button.chip")) {
      chip.setAttribute("aria-pressed", chosen[chip.dataset.facet].has(chip.dataset.value));
    }
    const state = new URLSearchParams();
    if ($("q").value) state.set("q", $("q").value);
    if (section) state.set("section", section);
    for (const [facet, set] of Object.entries(chosen)) {
      if (set.size) state.set(facet, [...set].join(","));
    }
    const filtered = state.size > 0;
    $("shown").textContent = filtered ? `${shown} of ${all} shown` : `${all} in all`;
    $("reset").disabled = !filtered;
    // Some browsers do not allow a page from a file to change its URL.
    if (tell) try { history.replaceState(null, "", filtered ? `#${state}` : location.pathname + location.search); } catch {}
  };

  const restore = () => {
    const target = location.hash.match(/^#step-\d+$/) && $(location.hash.slice(1));
    if (target) {
      target.open = true;
      if (target.hidden) reset();
      target.scrollIntoView();
      return;
    }
    const state = new URLSearchParams(location.hash.slice(1));
    $("q").value = state.get("q") ?? "";
    $("section").value = state.get("section") ?? "";
    if ($("section").selectedIndex < 0) $("section").value = "";
    for (const [facet, set] of Object.entries(chosen)) {
      const known = values(facet);
      set.clear();
      for (const value of (state.get(facet) ?? "").split(",")) if (known.has(value)) set.add(value);
    }
    show(false);
  };
  const reset = () => {
    $("q").value = "";
    $("section").value = "";
    for (const set of Object.values(chosen)) set.clear();
    show();
  };

  let waiting;
  $("q").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 120);
  });
  $("section").addEventListener("change", () => show());
  $("reset").addEventListener("click", reset);
  for (const [id, open] of [["unfold", true], ["fold", false]]) {
    $(id).addEventListener("click", () => {
      for (const { element } of steps) if (!element.hidden) element.open = open;
    });
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      $("q").focus();
    } else if (event.key === "Escape" && event.target === $("q")) {
      reset();
    }
  });
  addEventListener("hashchange", restore);
  form.hidden = false;
  restore();
  if (!location.hash) show(false);
})();
