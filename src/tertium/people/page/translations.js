// Texts of the interface, one file of JSON for each language.

export const LANGUAGES = {
  en: { name: "English", direction: "ltr" },
  de: { name: "Deutsch", direction: "ltr" },
  cs: { name: "Čeština", direction: "ltr" },
  zh: { name: "中文", direction: "ltr" },
  ar: { name: "العربية", direction: "rtl" },
};
const texts = {};

export function initialLanguage() {
  let stored = null;
  try {
    stored = localStorage.getItem("tertium-language");
  } catch {
    /* no storage */
  }
  const wanted = [stored, ...navigator.languages.map((code) => code.split("-")[0])];
  return wanted.find((code) => code && Object.hasOwn(LANGUAGES, code)) ?? "en";
}

export async function loadLanguage(code) {
  texts[code] ??= await (await fetch(`/static/${code}.json`)).json();
}

// Return a text with its {values} filled in.
export function translate(code, key, values = {}) {
  const template = texts[code]?.[key] ?? texts.en?.[key] ?? key;
  return template.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}
