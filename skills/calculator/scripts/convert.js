/**
 * Converts between units of one kind, without rounding where the units are defined exactly.
 *
 * Input: { "value": "26.2", "from": "mi", "to": "km" }; "digits" (1 to 100, default 15) is how many significant digits a
 * result gets that has no end. { "list": true } gives all units.
 * Result: { "result": "42.1648128", "unit": "km", "exact": true }.
 */

/** By kind, each unit in the kind's base unit: a decimal number, or a fraction of two. */
const UNITS = {
  length:
    "m=1 km=1000 cm=0.01 mm=0.001 um=0.000001 nm=0.000000001 in=0.0254 ft=0.3048 yd=0.9144 mi=1609.344 nmi=1852 " +
    "au=149597870700 ly=9460730472580800",
  mass:
    "kg=1 g=0.001 mg=0.000001 ug=0.000000001 t=1000 lb=0.45359237 oz=0.028349523125 st=6.35029318 ton-us=907.18474 " +
    "ton-uk=1016.0469088",
  volume:
    "L=1 mL=0.001 cL=0.01 dL=0.1 m3=1000 cm3=0.001 gal=3.785411784 qt=0.946352946 pt=0.473176473 cup=0.2365882365 " +
    "floz=0.0295735295625 tbsp=0.01478676478125 tsp=0.00492892159375 in3=0.016387064 ft3=28.316846592 " +
    "gal-uk=4.54609 pt-uk=0.56826125 floz-uk=0.0284130625",
  area:
    "m2=1 km2=1000000 cm2=0.0001 mm2=0.000001 ha=10000 acre=4046.8564224 ft2=0.09290304 in2=0.00064516 " +
    "yd2=0.83612736 mi2=2589988.110336",
  speed: "m/s=1 km/h=1/3.6 mph=0.44704 kn=1852/3600 ft/s=0.3048",
  time: "s=1 ms=0.001 us=0.000001 ns=0.000000001 min=60 h=3600 d=86400 wk=604800 yr=31557600",
  energy:
    "J=1 kJ=1000 MJ=1000000 Wh=3600 kWh=3600000 cal=4.184 kcal=4184 BTU=1055.05585262 " +
    "eV=0.0000000000000000001602176634",
  power: "W=1 kW=1000 MW=1000000 hp=745.69987158227022 PS=735.49875",
  pressure:
    "Pa=1 hPa=100 kPa=1000 MPa=1000000 bar=100000 mbar=100 atm=101325 psi=4.4482216152605/0.00064516 " +
    "mmHg=133.322387415 torr=101325/760",
  data:
    "bit=1 B=8 kbit=1000 Mbit=1000000 Gbit=1000000000 kB=8000 MB=8000000 GB=8000000000 TB=8000000000000 " +
    "PB=8000000000000000 KiB=8192 MiB=8388608 GiB=8589934592 TiB=8796093022208",
  angle: "deg=1 turn=360 grad=0.9 arcmin=1/60 arcsec=1/3600 rad=57.295779513082320876798154814105170332",
  temperature: "K=1 C=1 F=5/9 R=5/9",
};
/** What is added to a temperature before it is multiplied. */
const OFFSETS = { C: "273.15", F: "459.67" };
const INEXACT = new Set(["rad", "hp"]);

/** Other names, in lower case and without a plural's s; "_" stands for a space. */
const NAMES =
  "m=metre,meter km=kilometre,kilometer cm=centimetre,centimeter mm=millimetre,millimeter um=micrometre,micrometer,micron,µm " +
  "nm=nanometre,nanometer in=inch,inche,\" ft=foot,feet,' yd=yard mi=mile nmi=nautical_mile,NM ly=light_year,light-year " +
  "au=astronomical_unit g=gram,gramme kg=kilogram,kilo mg=milligram ug=microgram,µg t=tonne,metric_ton lb=pound " +
  "oz=ounce st=stone ton-us=short_ton ton-uk=long_ton L=litre,liter mL=millilitre,milliliter cL=centilitre,centiliter " +
  "dL=decilitre,deciliter cm3=cc,cm³ m3=m³,cubic_metre,cubic_meter gal=gallon,us_gallon qt=quart pt=pint " +
  "floz=fluid_ounce,fl_oz tbsp=tablespoon tsp=teaspoon gal-uk=imperial_gallon,uk_gallon pt-uk=imperial_pint,uk_pint " +
  "in3=cubic_inch,in³ ft3=cubic_foot,cubic_feet,ft³ m2=m²,sq_m,square_metre,square_meter " +
  "km2=km²,square_kilometre,square_kilometer cm2=cm² mm2=mm² ha=hectare ft2=ft²,sq_ft,square_foot,square_feet " +
  "in2=in²,square_inch yd2=yd²,square_yard mi2=mi²,square_mile m/s=mps km/h=kmh,kph,kilometre_per_hour,kilometer_per_hour " +
  "mph=mile_per_hour,mi/h,MPH kn=knot ft/s=fps s=second,sec ms=millisecond us=microsecond,µs ns=nanosecond min=minute " +
  "h=hour,hr d=day wk=week yr=year J=joule kJ=kilojoule cal=calorie kcal=kilocalorie Wh=watt_hour " +
  "kWh=kilowatt_hour,kilowatt-hour eV=electronvolt W=watt kW=kilowatt MW=megawatt hp=horsepower Pa=pascal hPa=hectopascal " +
  "kPa=kilopascal atm=atmosphere mbar=millibar B=byte kB=kilobyte,KB MB=megabyte GB=gigabyte TB=terabyte PB=petabyte " +
  "KiB=kibibyte MiB=mebibyte GiB=gibibyte TiB=tebibyte kbit=kilobit,kb Mbit=megabit,Mb Gbit=gigabit,Gb deg=degree,° rad=radian " +
  "turn=revolution C=celsiu,celsius,°c,degree_celsius,degrees_celsius F=fahrenheit,°f,degree_fahrenheit,degrees_fahrenheit " +
  "K=kelvin R=rankine";

/** "a=1 b=2" as pairs. */
const pairs = (text) =>
  text.split(" ").map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]);
const ALL = Object.entries(UNITS).flatMap(([kind, units]) =>
  pairs(units).map(([name, factor]) => ({ kind, name, factor })),
);
const ALIASES = new Map(
  pairs(NAMES).flatMap(([unit, names]) => names.split(",").map((name) => [name.replace(/_/g, " "), unit])),
);

export default function convert(input) {
  const { value, from, to, digits = 15, list } = input ?? {};
  if (list === true) {
    return Object.fromEntries(Object.entries(UNITS).map(([kind, units]) => [kind, pairs(units).map(([name]) => name)]));
  }
  if (value === undefined || from === undefined || to === undefined) {
    throw new Error('expected { "value": "5", "from": "mi", "to": "km" }');
  }
  if (!Number.isInteger(digits) || digits < 1 || digits > 100) throw new Error("digits: expected 1 to 100");
  const [source, target] = [find(from), find(to)];
  if (source.kind !== target.kind) {
    throw new Error(
      `${source.name} measures ${source.kind} and ${target.name} ${target.kind}: they cannot be converted`,
    );
  }
  const base = multiply(add(decimal(value), source.offset), source.factor);
  if (source.kind === "temperature" && base.n < 0n) throw new Error("there is no temperature below absolute zero");
  const result = add(multiply(base, { n: target.factor.d, d: target.factor.n }), {
    ...target.offset,
    n: -target.offset.n,
  });
  const isExact = ![source.name, target.name].some((name) => INEXACT.has(name) && source.name !== target.name);
  return { ...show(result, digits, isExact), unit: target.name };
}

const named = (wanted) => ALL.find(({ name }) => name === wanted);

/**
 * By its symbol, then by its name, then by its symbol in other letters: but Mb is not MB, and mW is not MW.
 */
function find(given) {
  const text = String(given).trim();
  const lower = text.toLowerCase();
  const alias = ALIASES.get(text) ?? ALIASES.get(lower) ?? ALIASES.get(lower.replace(/s$/, ""));
  const alike = ALL.filter(({ name }) => name.toLowerCase() === lower);
  const isSafe = ({ kind, name }) => kind !== "data" && name[0] !== "M" && text[0] !== "M";
  const found =
    named(text) ??
    named(alias) ??
    named(text.replace(/s$/, "")) ??
    (alike.length === 1 ? alike.find(isSafe) : undefined);
  if (!found) {
    const choice =
      alike.length > 0 ? `did you mean ${alike.map(({ name }) => name).join(" or ")}?` : 'see { "list": true }';
    throw new Error(`there is no unit "${text.slice(0, 40)}"; ${choice}`);
  }
  const [above = "", below = "1"] = found.factor.split(/\/(?=[\d.])/);
  const [n, d] = [decimal(above), decimal(below)];
  return { ...found, factor: reduce(n.n * d.d, n.d * d.n), offset: decimal(OFFSETS[found.name] ?? "0") };
}

// Fractions { n, d } of integers, d > 0.

const abs = (n) => (n < 0n ? -n : n);

function reduce(n, d) {
  let [a, b] = [abs(n), d];
  while (b > 0n) [a, b] = [b, a % b];
  return { n: n / a, d: d / a };
}

const add = (a, b) => reduce(a.n * b.d + b.n * a.d, a.d * b.d);
const multiply = (a, b) => reduce(a.n * b.n, a.d * b.d);

function decimal(value) {
  const match = /^([+-]?)(\d{0,300})(?:\.(\d{0,300}))?(?:[eE]([+-]?\d{1,3}))?$/.exec(String(value).trim());
  if (!match || !(match[2] || match[3]))
    throw new Error('value: expected a number such as "12.5", without thousands marks');
  const [, sign, before, after = "", exponent = "0"] = match;
  const shift = Number(exponent) - after.length;
  const digits = BigInt(before + after) * (sign === "-" ? -1n : 1n);
  return shift < 0 ? reduce(digits, 10n ** BigInt(-shift)) : reduce(digits * 10n ** BigInt(shift), 1n);
}

function show({ n, d }, digits, isExact) {
  let rest = d;
  for (const prime of [2n, 5n]) while (rest % prime === 0n) rest /= prime;
  const size = abs(n);
  const ends = rest === 1n && isExact;
  let places = 0;
  let scale = 1n;
  // Either until the number ends, or until it has the digits that were asked for.
  const enough = 10n ** BigInt(digits - 1);
  while (ends ? scale % d !== 0n : size > 0n && (size * scale) / d < enough) {
    scale *= 10n;
    places++;
  }
  const kept = ends ? (size * scale) / d : (2n * size * scale + d) / (2n * d);
  const padded = kept.toString().padStart(places + 1, "0");
  const before = padded.slice(0, padded.length - places);
  const behind = padded.slice(padded.length - places).replace(/0+$/, "");
  const sign = n < 0n ? "-" : "";
  return { result: `${sign}${before}${places > 0 && behind !== "" ? `.${behind}` : ""}`, exact: ends };
}
