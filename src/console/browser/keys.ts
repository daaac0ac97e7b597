import { roost } from "./api.ts";
import { attempt, confirmPress, day, make, part } from "./dom.ts";
import { instanceName } from "./names.ts";
import type { ApiKey } from "./records.ts";

const list = part("key-list", HTMLUListElement);
const more = part("more-keys", HTMLButtonElement);
const form = part("new-key", HTMLFormElement);
const name = part("key-name", HTMLInputElement);
const scopes = part("key-scopes", HTMLSelectElement);
const days = part("key-days", HTMLSelectElement);
const made = part("made-key", HTMLElement);
const shown = part("shown-key", HTMLElement);

/**
 * Lets the account's owner create and revoke keys. Calls `keyMade` with a new key, and with null once it is stored.
 * Returns a function that loads the list, to call when it is shown.
 */
export function openKeys(keyMade: (key: string | null) => void): () => void {
  let cursor: string | null = null;
  async function load(after: string | null): Promise<void> {
    const before = after === null ? [...list.children] : [];
    const page = await roost.get("/v1/auth/keys", { query: { limit: 20, after: after ?? undefined } });
    for (const row of before) row.remove();
    // One that was made while the page was read is there already.
    list.append(...page.data.filter(({ keyId }) => !document.getElementById(keyId)).map(keyRow));
    cursor = page.nextCursor;
    more.hidden = cursor === null;
  }
  more.addEventListener("click", () => void attempt(more, () => load(cursor)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(form, async () => {
      const ownName = name.value.trim();
      const wanted = scopes.value.split(" ") as ApiKey["scopes"];
      const { key = "", ...record } = await roost.post("/v1/auth/keys", {
        body: { scopes: wanted, name: ownName || undefined, expiresAt: inDays(Number(days.value)) },
      });
      list.prepend(keyRow(record));
      name.value = "";
      shown.textContent = key;
      made.hidden = false;
      made.focus();
      keyMade(key);
    });
  });
  part("key-stored", HTMLButtonElement).addEventListener("click", () => {
    made.hidden = true;
    shown.textContent = "";
    keyMade(null);
    name.focus();
  });
  return () => void attempt(more, () => load(null));
}

/** Undefined for a key that does not expire. */
const inDays = (count: number): string | undefined =>
  count === 0 ? undefined : new Date(Date.now() + count * 24 * 3_600_000).toISOString();

function keyRow(key: ApiKey): HTMLLIElement {
  const used = key.lastUsedAt === null ? "never used" : `used ${day(key.lastUsedAt)}`;
  const reach = key.scopes.includes("write") ? "" : ` · only ${key.scopes.includes("chat") ? "chats" : "reads"}`;
  const may = key.scopes.includes("approve") ? `${reach} · approves` : reach;
  const ends = key.expiresAt !== null && Date.parse(key.expiresAt) <= Date.now() ? "expired" : "expires";
  const until = key.expiresAt === null ? "" : ` · ${ends} ${day(key.expiresAt)}`;
  const where = key.instanceId === null ? [] : [" · only in ", instanceName(key.instanceId)];
  const revoke = make("button", "quiet", "Revoke");
  const label = key.name ?? "Without a name";
  revoke.type = "button";
  revoke.setAttribute("aria-label", `Revoke ${label}`);
  const row = make(
    "li",
    "key",
    make("div", "", make("b", "", label), make("code", "", `${key.prefix}…`)),
    make("span", "soft", `made ${day(key.createdAt)} · ${used}${until}${may}`, ...where),
    revoke,
  );
  row.id = key.keyId;
  confirmPress(revoke, "Really revoke?", async () => {
    await roost.delete("/v1/auth/keys/{keyId}", { path: { keyId: key.keyId } });
    row.remove();
    part("keys-told", HTMLElement).textContent = `${label} is revoked.`;
  });
  return row;
}
