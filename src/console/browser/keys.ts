import { type ApiKey, call, type Page } from "./api.ts";
import { attempt, day, make, part } from "./dom.ts";

const list = part("key-list", HTMLUListElement);
const more = part("more-keys", HTMLButtonElement);
const form = part("new-key", HTMLFormElement);
const name = part("key-name", HTMLInputElement);
const scopes = part("key-scopes", HTMLSelectElement);
const made = part("made-key", HTMLElement);
const shown = part("shown-key", HTMLElement);

/** Lists the account's keys and lets its owner make and revoke them. A key made is told once, null when put away. */
export function openKeys(keyMade: (key: string | null) => void): void {
  let cursor: string | null = null;
  const load = async () => {
    const after = cursor === null ? "" : `&after=${encodeURIComponent(cursor)}`;
    const page = await call<Page<ApiKey>>("GET", `/auth/keys?limit=20${after}`);
    list.append(...page.data.map(keyRow));
    cursor = page.nextCursor;
    more.hidden = cursor === null;
  };
  more.addEventListener("click", () => void attempt(more, load));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(form, async () => {
      const ownName = name.value.trim();
      const input = { scopes: scopes.value.split(" "), ...(ownName && { name: ownName }) };
      const record = await call<ApiKey & { key: string }>("POST", "/auth/keys", input);
      list.prepend(keyRow(record));
      name.value = "";
      shown.textContent = record.key;
      made.hidden = false;
      made.focus();
      keyMade(record.key);
    });
  });
  part("key-stored", HTMLButtonElement).addEventListener("click", () => {
    made.hidden = true;
    shown.textContent = "";
    keyMade(null);
    name.focus();
  });
  void attempt(more, load);
}

function keyRow(key: ApiKey): HTMLLIElement {
  const used = key.lastUsedAt === null ? "never used" : `used ${day(key.lastUsedAt)}`;
  const may = key.scopes.includes("write") ? "" : ` · only ${key.scopes.includes("chat") ? "chats" : "reads"}`;
  const revoke = make("button", "quiet", "Revoke");
  const label = key.name ?? "Without a name";
  revoke.type = "button";
  revoke.setAttribute("aria-label", `Revoke ${label}`);
  const row = make(
    "li",
    "key",
    make("div", "", make("b", "", label), make("code", "", `${key.prefix}…`)),
    make("span", "soft", `${day(key.createdAt)} · ${used}${may}`),
    revoke,
  );
  askTwice(revoke, async () => {
    await call("DELETE", `/auth/keys/${key.keyId}`);
    row.remove();
    name.focus();
  });
  return row;
}

/** The first press asks, the second does it; leaving the button takes the question back. */
function askTwice(button: HTMLButtonElement, work: () => Promise<void>): void {
  const [text, label] = [button.textContent, button.getAttribute("aria-label") ?? ""];
  const ask = (asking: boolean) => {
    button.classList.toggle("asking", asking);
    button.textContent = asking ? "Really revoke?" : text;
    button.setAttribute("aria-label", asking ? `Really ${label.toLowerCase()}?` : label);
  };
  button.addEventListener("blur", () => ask(false));
  button.addEventListener("click", () => {
    if (button.classList.contains("asking")) void attempt(button, work);
    else ask(true);
  });
}
