#!/usr/bin/env bash
# Prints the home of a Java that Spark supports: 17 or 21. Messages go to stderr.
#
# Looks at $JAVA_HOME, then at `java` on PATH, then in the folder $COINCIDE_JVM_ROOT (default
# /usr/lib/jvm), 17 before 21. If there is none it installs one with apt-get where it may;
# otherwise it says what to do and exits 1.
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
jvm_root=${COINCIDE_JVM_ROOT:-/usr/lib/jvm}

# Prints "MAJOR HOME" of the java command $1, nothing if it does not run.
describe() {
    { "$1" -XshowSettings:properties -version 2>&1 </dev/null || true; } | awk -F ' = ' '
        $1 ~ /^ *java\.specification\.version$/ { major = $2 }
        $1 ~ /^ *java\.home$/ { home = $2 }
        END { if (major != "" && home != "") print major, home }'
}

# Prints the home of the java command $1 if its major version is one of $2 ...
home_if() {
    local java=$1 major home wanted
    shift
    [ -x "$java" ] || return 1
    read -r major home <<<"$(describe "$java")" || true
    for wanted in "$@"; do
        if [ "$major" = "$wanted" ]; then
            echo "$home"
            return 0
        fi
    done
    return 1
}

chosen_by_user() {
    if [ -n "${JAVA_HOME:-}" ]; then
        home_if "$JAVA_HOME/bin/java" 17 21 && return 0
        echo "JAVA_HOME=$JAVA_HOME is no Java 17 or 21, which Spark needs; looking for another" >&2
    fi
    home_if "$(command -v java || true)" 17 21
}

installed() {
    local wanted java
    for wanted in 17 21; do
        for java in "$jvm_root"/*/bin/java; do
            home_if "$java" "$wanted" && return 0
        done
    done
    return 1
}

chosen_by_user && exit 0
installed && exit 0

echo "No Java 17 or 21 found in JAVA_HOME, on PATH or in $jvm_root" >&2
if "$scripts/apt-install.sh" openjdk-17-jre-headless openjdk-21-jre-headless; then
    installed && exit 0
fi
cat >&2 <<'END'
Spark needs Java 17 or 21, and none could be installed from here. Do one of these, then try again:
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless    (or openjdk-21-jre-headless)
  Fedora:          sudo dnf install java-21-openjdk-headless
  macOS:           brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)"
  conda:           conda install -c conda-forge openjdk=17
  already there:   export JAVA_HOME=/path/to/java-17
END
exit 1
