/** Of the keys in this tab's storage that hold what was written. */
const DRAFT = "roost.draft.";
const BETWEEN = "\n\n";

/**
 * What an account has written and not sent, by where it belongs. It is in this tab's storage, so that it is there again
 * after a reload, and for who signs in again after the session has ended by itself.
 */
export interface Drafts {
  /** What is being written; "" if there is nothing. */
  get(place: string): string;
  set(place: string, text: string): void;
  /** Takes a text that is about to be sent. It stays in the storage until one of these is called. */
  send(place: string, text: string): { sent(): void; returned(): void };
}

interface Place {
  /** What could not be sent, with which `text` begins. */
  returned: string;
  text: string;
  /** What is being sent, in order. */
  sending: { text: string }[];
}

/** The drafts of this account. Removes those of others: somebody else has signed in since. */
export function openDrafts(accountId: string): Drafts {
  const own = `${DRAFT}${accountId} `;
  for (const key of Object.keys(sessionStorage)) {
    if (key.startsWith(DRAFT) && !key.startsWith(own)) sessionStorage.removeItem(key);
  }
  const places = new Map<string, Place>();

  function at(place: string): Place {
    const known = places.get(place);
    if (known) return known;
    const found = { returned: "", text: sessionStorage.getItem(own + place) ?? "", sending: [] };
    places.set(place, found);
    return found;
  }

  function keep(place: string): void {
    const { sending } = at(place);
    const text = withReturned(at(place), ...sending.map((one) => one.text)).text;
    try {
      if (text === "") sessionStorage.removeItem(own + place);
      else sessionStorage.setItem(own + place, text);
    } catch {
      // The storage is full: it stays in memory.
    }
  }

  return {
    get: (place) => at(place).text,
    set(place, text) {
      const { returned, sending } = at(place);
      // What came back and was changed since is like anything else that is written.
      const isUnchanged = text === returned || text.startsWith(returned + BETWEEN);
      places.set(place, { returned: isUnchanged ? returned : "", text, sending });
      keep(place);
    },
    send(place, text) {
      const one = { text };
      at(place).sending.push(one);
      keep(place);
      const end = () => {
        const { sending } = at(place);
        sending.splice(sending.indexOf(one), 1);
      };
      return {
        sent() {
          end();
          keep(place);
        },
        returned() {
          end();
          Object.assign(at(place), withReturned(at(place), text));
          keep(place);
        },
      };
    },
  };
}

/** Puts these behind what has come back before them, and before what is being written. */
function withReturned({ returned, text }: Place, ...more: string[]): Pick<Place, "returned" | "text"> {
  const all = joined(returned, ...more);
  return { returned: all, text: joined(all, text.slice(returned.length).trimStart()) };
}

const joined = (...texts: string[]): string => texts.filter(Boolean).join(BETWEEN);
