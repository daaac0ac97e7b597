import { attempt, confirmPress, make, makeAlert, makeButton, reportErrors } from "./dom.ts";
import { deleteFile, type FileAt, lines, readFile, type Version, withLineEnds, writeFile } from "./file-text.ts";
import { saveAs } from "./save-as.ts";

/** What somebody has written and not saved, with the version that it was made of, or that it is to be written over. */
export interface Draft {
  text: string;
  of: Version;
  /** It is no change of that version: which of both stays, somebody who sees them decides. */
  isOther?: boolean;
}

export interface EditorParts {
  at: FileAt;
  draft: Draft | undefined;
  /** Keeps what is not saved yet; undefined once it is saved or dropped. */
  keep(draft: Draft | undefined): void;
  /** The file has got this text. */
  saved(text: string): void;
  deleted(): void;
}

/**
 * A form for the text of one file. What the agent has changed in between is never written over without having been shown,
 * and what is written here stays in it until it is saved or dropped.
 */
export function makeFileEditor({ at, draft, keep, saved, deleted }: EditorParts): HTMLElement {
  let version: Version | undefined;
  const text = make("textarea", "mono");
  Object.assign(text, { rows: 12, spellcheck: false, disabled: true });
  text.setAttribute("aria-label", `Text of ${at.file}`);
  const save = make("button", "", "Save");
  save.disabled = true;
  const told = make("p", "soft");
  told.role = "status";
  const conflict = make("div", "conflict");
  conflict.hidden = true;
  const download = make("button", "quiet", "Download");
  download.type = "button";
  download.setAttribute("aria-label", `Download ${at.file}`);
  const remove = make("button", "quiet", "Delete");
  remove.type = "button";
  remove.setAttribute("aria-label", `Delete ${at.file}`);
  const form = make("form", "", text, make("div", "row", save, download, remove), told, conflict, makeAlert());
  const section = make("section", "file", form);

  const isChanged = () => version !== undefined && text.value !== lines(version.text);
  function show(next: Version, value = lines(next.text)): void {
    version = next;
    text.value = value;
    text.disabled = false;
    conflict.hidden = true;
    follow();
  }
  function follow(): void {
    const is = isChanged();
    save.disabled = !is;
    keep(
      is && version
        ? { text: text.value, of: version, isOther: draft?.isOther === true && draft.of === version }
        : undefined,
    );
  }

  /** Shows what the file says now, below what is written here. */
  function showConflict(now: Version, happened = "It was changed meanwhile, by its agent or by somebody else."): void {
    const isGone = now.etag === null;
    const over = makeButton(isGone ? "Make it again with my text" : "Save mine over it", "", () => store(now));
    const drop = make("button", "quiet", "Drop mine");
    drop.type = "button";
    drop.setAttribute("aria-label", "Drop mine");
    confirmPress(drop, "Sure?", async () => {
      if (isGone) return deleted();
      show(now);
      saved(now.text);
      text.focus();
    });
    const what = isGone
      ? "It was deleted meanwhile. Your text is above, and is not saved."
      : `${happened} Your text is above, and is not saved. It now says:`;
    const title = make("p", "warning", what);
    title.tabIndex = -1;
    conflict.replaceChildren(title, ...(isGone ? [] : [make("pre", "text", now.text)]), make("div", "row", over, drop));
    for (const pre of conflict.querySelectorAll("pre")) pre.tabIndex = 0;
    conflict.hidden = false;
    title.focus();
  }

  async function store(over: Version): Promise<void> {
    const wanted = text.value;
    told.textContent = "";
    const written = await writeFile(at, withLineEnds(wanted, over), over);
    if (written === null) return showConflict(await readFile(at));
    // What was written meanwhile is not saved yet.
    show(written, text.value);
    told.textContent = "Saved. It counts from the next message on.";
    saved(written.text);
    text.focus();
  }

  text.addEventListener("input", () => {
    told.textContent = "";
    follow();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const over = version;
    if (!over || !isChanged()) return;
    void attempt(save, () => store(over)).then(follow);
  });
  // As it is written here, saved or not.
  download.addEventListener("click", () => {
    if (!version) return;
    const contents = new Blob([withLineEnds(text.value, version)], { type: "text/plain" });
    saveAs(at.file.slice(at.file.lastIndexOf("/") + 1), contents);
  });
  confirmPress(remove, "Really delete?", async () => {
    if (!version) return;
    if ((await deleteFile(at, version)) !== null) {
      keep(undefined);
      return deleted();
    }
    const now = await readFile(at);
    if (isChanged()) return showConflict(now);
    if (now.etag === null) return deleted();
    show(now);
    told.textContent = "It was changed meanwhile, and is not deleted: this is what it says now.";
  });

  if (draft) {
    show(draft.of, draft.text);
    if (draft.isOther) showConflict(draft.of, "It was there already.");
  } else {
    void reportErrors(form, async () => {
      show(await readFile(at));
      if (version?.etag === null) told.textContent = "It was deleted meanwhile. Saving a text makes it again.";
    });
  }
  return section;
}
