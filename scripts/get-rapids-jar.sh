#!/usr/bin/env bash
# Fetches the RAPIDS Accelerator (1 GB) from Maven Central, if it is not here yet, and prints where it is.
#
#     scripts/get-rapids-jar.sh PYTHON
#
# PYTHON is an interpreter that has pyspark: Spark brings the fetcher (Apache Ivy). The POM is left
# alone: it names a parent that was never published, at which both Ivy and Maven give up.
set -euo pipefail

python=$1
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
java=$("$scripts/find-java.sh")/bin/java
cd "$scripts/.."

read -r group artifact version jar ivy < <("$python" - <<'END'
import pathlib, pyspark
from spark_plugin.cluster.rapids import RAPIDS_COORDINATES, cached_jar

ivy = next(pathlib.Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
print(*RAPIDS_COORDINATES.split(":"), cached_jar(), ivy)
END
)
if [ -e "$jar" ]; then
    echo "$jar"
    exit 0
fi

mkdir -p "$(dirname "$jar")"
work=$(mktemp -d "$(dirname "$jar")/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/settings.xml" <<'END'
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
END
echo "Fetching $artifact $version, 1 GB" >&2
if ! "$java" -jar "$ivy" -warn -settings "$work/settings.xml" -cache "$work" \
    -dependency "$group" "$artifact" "$version" >"$work/log" 2>&1; then
    tail -n 20 "$work/log" >&2
    exit 1
fi
mv "$work/$group/$artifact/jars/$artifact-$version.jar" "$jar"
echo "$jar"
