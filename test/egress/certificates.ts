import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificate {
  key: string;
  cert: string;
}

/** A throw-away authority, and certificates by it for these names (`DNS:…` or `IP:…`). Needs the openssl program. */
export function makeCertificates(...names: string[]): { ca: string; of(name: string): Certificate } {
  const folder = mkdtempSync(join(tmpdir(), "roost-ca-"));
  const openssl = (...words: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(["openssl", ...words], { cwd: folder, stderr: "pipe" });
    if (exitCode !== 0) throw new Error(`openssl ${words[0]}: ${stderr}`);
  };
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  try {
    openssl("req", "-x509", ...newKey, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test authority");
    const made = names.map((name, at): [string, Certificate] => {
      const file = (ending: string) => join(folder, `${at}.${ending}`);
      writeFileSync(file("ext"), `subjectAltName=${name}`);
      openssl("req", ...newKey, "-keyout", `${at}.key`, "-out", `${at}.csr`, "-subj", "/CN=Test");
      const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", `${at}.ext`];
      openssl("x509", "-req", "-in", `${at}.csr`, "-out", `${at}.pem`, ...signed);
      return [name, { key: readFileSync(file("key"), "utf8"), cert: readFileSync(file("pem"), "utf8") }];
    });
    const byName = new Map(made);
    return {
      ca: readFileSync(join(folder, "ca.pem"), "utf8"),
      of(name) {
        const found = byName.get(name);
        if (found === undefined) throw new Error(`no certificate was made for ${name}`);
        return found;
      },
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
